// Files of other programs and of older versions.
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, watch, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { sessionInfo } from "../../../core/session/list.ts";
import { afterTest } from "../../support/clean-up.ts";
import { opened, soak, tempDir, usage, user, worker } from "./_helpers.ts";

function write(entries: readonly unknown[], file = join(tempDir(), "s.jsonl")): string {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, entries.map((entry) => `${typeof entry === "string" ? entry : JSON.stringify(entry)}\n`).join(""));
  return file;
}

const header = { type: "session", version: 3, id: "0199-x", timestamp: "2026-01-01T00:00:00.000Z", cwd: "/home/u/p" };
const at = (n: number): string => new Date(Date.UTC(2026, 0, 1, 0, n)).toISOString();
const slot = (title: string, updatedAt: string): string => {
  const line = JSON.stringify({ type: "title", v: 1, title, source: "auto", updatedAt, pad: "" });
  return line.replace('"pad":""', `"pad":"${" ".repeat(255 - line.length)}"`);
};

describe("version 3 files", () => {
  it("with a title line before the header: the newer of line and entry names the session, and the line stays", async () => {
    const named = { type: "title_change", id: "b", parentId: "a", timestamp: at(5), title: "by entry", source: "user" };
    const first = { type: "message", id: "a", parentId: null, timestamp: at(1), message: user("hi") };
    const older = await opened(write([slot("by line", at(4)), header, first, named]));
    expect([older.log.name, older.log.nameSource]).toEqual(["by entry", "user"]);
    const file = write([slot("by line", at(6)), header, first, named]);
    const before = readFileSync(file);
    const { log, report } = await opened(file);
    expect([log.name, log.nameSource, log.id, log.cwd]).toEqual(["by line", "auto", "0199-x", "/home/u/p"]);
    expect(report.lostLines).toBe(0);
    log.setName("mine", "user");
    expect(log.entries.at(-1)).toMatchObject({ type: "title_change", title: "mine", previousTitle: "by line", source: "user" });
    const after = readFileSync(file);
    expect(after.subarray(0, before.length).equals(before)).toBe(true);
    expect(before.indexOf(10)).toBe(255);
  });

  it("keep unknown entry types and fields, through branch and copy", async () => {
    const strange = { type: "from_the_future", id: "b", parentId: "a", timestamp: at(2), payload: { deep: [1] } };
    const first = {
      type: "message",
      id: "a",
      parentId: null,
      timestamp: at(1),
      message: { ...user("hi"), extra: 1 },
      more: true,
    };
    const { log } = await opened(write([header, first, strange]));
    expect(log.entries).toEqual([first, strange]);
    expect(log.copyPath("b", { sessionsDir: undefined }).entries).toEqual([first, strange]);
  });

  it("with messages that lack usage, content or known roles still give a sound context (item 18)", async () => {
    const bare = {
      role: "assistant",
      content: [{ type: "text", text: "t" }, { type: "fallback" }],
      provider: "p",
      model: "m",
      stopReason: "stop",
      timestamp: 1,
    };
    const messages = [
      user("hi"),
      bare,
      { role: "hookMessage", customType: "h", content: "hook", display: true, timestamp: 5 },
      { role: "pythonExecution", code: "1+1", output: "2", cancelled: false, truncated: false, timestamp: 6 },
      { role: "fileMention", files: [{ path: "a.ts", content: "x" }], timestamp: 7 },
      { role: "toolResult", content: [], timestamp: 8 },
      { role: "unheard-of", timestamp: 9 },
    ];
    const { log } = await opened(
      write([
        header,
        ...messages.map((message, i) => ({
          type: "message",
          id: `e${i}`,
          parentId: i === 0 ? null : `e${i - 1}`,
          timestamp: at(i),
          message,
        })),
      ]),
    );
    expect(log.entries).toHaveLength(messages.length);
    expect(log.context().map((message) => message.role)).toEqual(["user", "assistant", "custom", "custom", "custom"]);
    expect(log.context()[1]).toMatchObject({
      content: [{ type: "text", text: "t" }],
      usage: { input: 0, totalTokens: 0, cost: { total: 0 } },
    });
    expect(log.context()[2]).toEqual({ role: "custom", customType: "h", content: "hook", display: true, timestamp: 5 });
    expect(log.stats().assistantMessages).toBe(1);
  });

  it("with the result of a tool as a text keep it", async () => {
    const result = { role: "toolResult", toolCallId: "c", toolName: "t", content: "said", isError: true, timestamp: 3 };
    const { log } = await opened(
      write([header, { type: "message", id: "a", parentId: null, timestamp: at(1), message: result }]),
    );
    expect(log.context()).toEqual([{ ...result, content: [{ type: "text", text: "said" }] }]);
  });

  it("with both shapes of model_change", async () => {
    const pi = { type: "model_change", id: "a", parentId: null, timestamp: at(1), provider: "anthropic", modelId: "c" };
    const omp = { type: "model_change", id: "b", parentId: "a", timestamp: at(2), model: "openai/g/x" };
    const { log } = await opened(write([header, pi, omp]));
    expect(log.model).toEqual({ provider: "openai", modelId: "g/x" });
    log.branchTo("a");
    expect(log.model).toEqual({ provider: "anthropic", modelId: "c" });
  });

  it("with images and texts kept as blobs beside: resolved when there, left when missing or wrong", async () => {
    const root = tempDir();
    const put = (bytes: string): string => {
      const hash = createHash("sha256").update(bytes).digest("hex");
      mkdirSync(join(root, "blobs"), { recursive: true });
      writeFileSync(join(root, "blobs", hash), bytes);
      return hash;
    };
    const image = put("PNG bytes");
    const text = put("a long t\u00e4xt");
    const wrong = put("changed");
    writeFileSync(join(root, "blobs", wrong), "something else");
    const missing = "0".repeat(64);
    const part = (hash: string): unknown => ({ type: "image", data: `blob:sha256:${hash}`, mimeType: "image/png" });
    const message = {
      role: "user",
      content: [
        part(image),
        part(missing),
        part(wrong),
        { type: "text", text: `blobtext:sha256:${text}` },
        { type: "text", text: `see blob:sha256:${image}` },
      ],
      timestamp: 1,
    };
    const file = write(
      [header, { type: "message", id: "a", parentId: null, timestamp: at(1), message }],
      join(root, "sessions", "-p", "s.jsonl"),
    );
    const { log } = await opened(file);
    expect(log.context()[0]?.role === "user" && log.context()[0]).toMatchObject({
      content: [
        { data: Buffer.from("PNG bytes").toString("base64") },
        { data: `blob:sha256:${missing}` },
        { data: `blob:sha256:${wrong}` },
        { text: "a long t\u00e4xt" },
        { text: `see blob:sha256:${image}` },
      ],
    });
  });

  it("with a byte order mark and CRLF", async () => {
    const first = { type: "message", id: "a", parentId: null, timestamp: at(1), message: user("hi") };
    const file = write([`\uFEFF${JSON.stringify(header)}\r`, `${JSON.stringify(first)}\r`, "\r", ""]);
    const { log, report } = await opened(file);
    expect(log.entries).toEqual([first]);
    expect(report.damage).toEqual([]);
  });
});

describe("what a session can do without", () => {
  const first = { type: "message", id: "a", parentId: null, timestamp: at(1), message: user("hi") };
  const wrong = [null, 5, ["x"], { a: 1 }];

  it.each(["title", "titleSource", "parentSession", "cwd"])(
    "a header whose %s is of another type is one without",
    async (field) => {
      for (const value of wrong) {
        const file = write([{ ...header, [field]: value }, first]);
        const { log, report } = await opened(file);
        expect([log.id, log.name, log.parentSession]).toEqual([header.id, undefined, undefined]);
        expect([log.entries, report.damage]).toEqual([[first], []]);
        expect(await sessionInfo(file)).toMatchObject({ id: header.id, firstMessage: "hi" });
      }
    },
  );

  it.each(["title", "source", "updatedAt", "v", "pad"])(
    "a title line whose %s is of another type is still one",
    async (field) => {
      for (const value of wrong) {
        const file = write([{ ...JSON.parse(slot("by line", at(4))), [field]: value }, header, first]);
        const { log } = await opened(file);
        expect([log.id, log.entries]).toEqual([header.id, [first]]);
        expect(log.name).toBe(field === "title" ? undefined : "by line");
        expect(await sessionInfo(file)).toMatchObject({ id: header.id });
      }
    },
  );
});

describe("older versions", () => {
  const v1 = [
    { type: "session", id: "old", timestamp: at(0), cwd: "/p", provider: "anthropic", modelId: "c", thinkingLevel: "off" },
    { type: "message", timestamp: at(1), message: user("one") },
    {
      type: "message",
      timestamp: at(2),
      message: {
        role: "assistant",
        content: [{ type: "text", text: "1" }],
        api: "a",
        provider: "p",
        model: "m",
        usage,
        stopReason: "stop",
        timestamp: 2,
      },
    },
    { type: "message", timestamp: at(3), message: user("two") },
    { type: "compaction", timestamp: at(4), summary: "S", firstKeptEntryIndex: 3, tokensBefore: 5 },
    {
      type: "message",
      timestamp: at(5),
      message: { role: "hookMessage", customType: "h", content: "hook", display: true, timestamp: 6 },
    },
  ];

  it("1: a flat list becomes one path; indices become ids; the file changes with the first write only, after a backup", async () => {
    const file = write(v1);
    const before = readFileSync(file);
    const { log, report } = await opened(file);
    expect(report).toEqual({ version: 1, lostLines: 0, damage: [] });
    expect(log.path()).toEqual(log.entries);
    expect(log.context()).toEqual([
      expect.objectContaining({ role: "compactionSummary", summary: "S" }),
      user("two"),
      expect.objectContaining({ role: "custom", content: "hook" }),
    ]);
    expect(readFileSync(file).equals(before)).toBe(true);
    log.append({ type: "message", message: user("three") });
    log.append({ type: "message", message: user("four") });
    log.close();
    const backups = readdirSync(dirname(file)).filter((name) => name.includes(".bak-"));
    expect(backups).toHaveLength(1);
    expect(readFileSync(join(dirname(file), backups[0] ?? "")).equals(before)).toBe(true);
    expect(readdirSync(dirname(file)).sort()).toEqual(["s.jsonl", backups[0]].sort());
    const again = await opened(file);
    expect(again.report).toEqual({ version: 3, lostLines: 0, damage: [] });
    expect(again.log.entries).toEqual(log.entries);
    expect(again.log.header).toMatchObject({ id: "old", provider: "anthropic", version: 3 });
  });

  it("1: ids are the same at each load, and a lost line does not shift the indices", async () => {
    const broken = v1.map((entry, i) => (i === 2 ? "{broken" : JSON.stringify(entry)));
    const first = await opened(write(broken));
    const second = await opened(write(broken));
    expect(first.log.entries).toEqual(second.log.entries);
    expect(first.log.context().map((message) => message.role)).toEqual(["compactionSummary", "user", "custom"]);
    expect(first.report.lostLines).toBe(1);
  });

  it("1: is not replaced when another program has written to it since it was read", async () => {
    const file = write(v1);
    const { log } = await opened(file);
    const grown = `${readFileSync(file, "utf8")}${JSON.stringify(v1[1])}\n`;
    writeFileSync(file, grown);
    expect(() => log.append({ type: "message", message: user("three") })).toThrow(/changed by another program/);
    expect(readFileSync(file, "utf8")).toBe(grown);
  });

  it("1: kill -9 at any moment of the rewrite leaves the old or the new file, complete, and no litter (item 45)", {
    timeout: 300_000,
  }, async () => {
    const long = user("x".repeat(2000));
    const flat = [v1[0], ...Array.from({ length: 3000 }, (_, i) => ({ type: "message", timestamp: at(i), message: long }))];
    const tries = soak ? 20 : 2;
    for (let n = 0; n < tries; n++) {
      const file = write(flat);
      const w = worker();
      expect(await w.ask({ do: "open", file })).toEqual({ entries: 3000 });
      const seen = new Promise<void>((resolve) => {
        const watching = watch(dirname(file), (_, name) => name?.includes(".tmp-") && resolve());
        afterTest(() => watching.close());
      });
      void w.ask({ do: "append", text: "new" });
      await seen;
      await sleep(n * 2);
      await w.kill();
      const { log, report } = await opened(file);
      expect(report.lostLines).toBe(0);
      expect(log.entries.length).toBe(report.version === 1 ? 3000 : 3001);
      expect(readdirSync(dirname(file)).filter((name) => name.includes(".tmp-"))).toEqual([]);
      log.close();
    }
  });

  it("2: the tree stays, hook messages become custom ones", async () => {
    const entries = [
      { ...header, version: 2 },
      { type: "message", id: "aaaaaaaa", parentId: null, timestamp: at(1), message: user("one") },
      {
        type: "message",
        id: "bbbbbbbb",
        parentId: "aaaaaaaa",
        timestamp: at(2),
        message: { role: "hookMessage", customType: "h", content: "x", display: false, timestamp: 2 },
      },
      { type: "message", id: "cccccccc", parentId: "aaaaaaaa", timestamp: at(3), message: user("other branch") },
    ];
    const { log } = await opened(write(entries));
    expect(log.entry("bbbbbbbb")).toMatchObject({ message: { role: "custom" } });
    expect(log.context()).toEqual([user("one"), user("other branch")]);
  });
});
