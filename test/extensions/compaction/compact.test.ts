// The compact command (protocol-facts §1.7; public-bugs 8; agent-semantics §12 items 35, 37, 38, 41).
import { readFile } from "node:fs/promises";
import { afterEach, describe, expect, it } from "vitest";
import { defineHook, overrideCommand, sessionBeforeCompact, sessionCompacted } from "../../../core/extension.ts";
import type { TestDaemon } from "../../../core/testing.ts";
import { fail, Gate, says } from "../../support/scripted-provider.ts";
import { answers, ofType, type Scene, startScene, textOf } from "./_start.ts";

let d: TestDaemon;
afterEach(async () => {
  const errors = ofType(d, "extension_error");
  await d.stop();
  expect(errors).toEqual([]);
});
const start = async (scene: Partial<Scene> = {}) => {
  const made = await startScene({ answer: (_request, turn) => answers(`answer ${turn} ${"x".repeat(100)}`, 100), ...scene });
  d = made.d;
  return made;
};
const talk = async (...texts: string[]) => {
  for (const text of texts) await d.prompt(text);
};
const messages = async () => (await d.ask("get_messages"))["messages"] as { role: string }[];

describe("compact", () => {
  it("replaces older messages by the summary and answers with it", async () => {
    const { provider, summaries } = await start();
    await talk("first", "second", "third");
    const response = await d.request("compact", { customInstructions: "Mind the parser" });
    expect(response).toMatchObject({
      success: true,
      data: { summary: "## Goal\nSummed up.", shortSummary: "Summed up.", details: { readFiles: [], modifiedFiles: [] } },
    });
    const data = response["data"] as { firstKeptEntryId: string; tokensBefore: number };
    expect(data.tokensBefore).toBeGreaterThan(0);
    const { log } = d.daemon.conversations.attached;
    expect(log.entry(data.firstKeptEntryId)).toMatchObject({ type: "message", message: { role: "user" } });
    expect((await messages()).map((message) => message.role)).toEqual(["compactionSummary", "user", "assistant"]);
    const [request] = summaries();
    expect(request).toMatchObject({ toolChoice: "none", tools: [] });
    const prompt = textOf(request?.messages[0]);
    expect(prompt).toContain("[User]: first");
    expect(prompt).toContain("answer 1");
    expect(prompt).not.toContain("[User]: third");
    expect(prompt).toContain("Mind the parser");
    expect(ofType(d, "auto_compaction_start")).toEqual([]);
    await talk("fourth");
    expect(textOf(provider.requests.at(-1)?.messages[0])).toContain("Summed up.");
    expect(provider.refused).toEqual([]);
    expect(await readFile(log.file ?? "", "utf8")).toContain('"type":"compaction"');
  });

  it("brings the summary before up to date, and collects files", async () => {
    const replies = [
      [
        { name: "read", args: { path: "a.ts" } },
        { name: "write", args: { path: "b.ts", content: "1" } },
      ],
      [
        { name: "read", args: { path: "c.ts" } },
        { name: "read", args: { path: "b.ts" } },
      ],
    ];
    const { summaries } = await start({
      answer: (request) => {
        const last = request.messages.at(-1);
        const next = last?.role === "user" ? replies.shift() : undefined;
        if (next === undefined) return answers(`said ${"y".repeat(200)}`, 100);
        return [
          { type: "start" },
          ...next.flatMap(({ name, args }, index) => [
            { type: "toolcall_start" as const, index, id: `${name}${index}${replies.length}`, name },
            { type: "toolcall_end" as const, index, arguments: args },
          ]),
          { type: "done", stopReason: "toolUse" },
        ];
      },
      summary: (_request, turn) => says(`## Goal\nNotes ${turn}`),
    });
    await talk("one", "two");
    const first = await d.ask("compact");
    expect(first["details"]).toEqual({ readFiles: ["a.ts", "c.ts"], modifiedFiles: ["b.ts"] });
    expect(first["summary"]).toContain("## Files\nChanged:\n- b.ts\nRead:\n- a.ts");
    await talk("three", "four");
    const second = await d.ask("compact");
    expect(second["details"]).toEqual({ readFiles: ["a.ts", "c.ts"], modifiedFiles: ["b.ts"] });
    const prompt = textOf(summaries()[1]?.messages[0]);
    expect(prompt).toContain("<previous-notes>\n## Goal\nNotes");
    expect(prompt).not.toContain("## Files");
    expect((await messages()).filter((message) => message.role === "compactionSummary")).toHaveLength(1);
  });

  it("refuses with the texts that hosts know", async () => {
    await start({ config: "compaction:\n  keepRecentTokens: 2000\n" });
    expect(await d.request("compact")).toMatchObject({ success: false, error: "Nothing to compact (session too small)" });
    await talk("one", "two");
    expect(await d.request("compact")).toMatchObject({ success: false, error: "Nothing to compact (session too small)" });
    // A long answer to a short prompt: nothing before it is worth a summary.
    expect((await d.ask("get_state"))["messageCount"]).toBe(4);
    Object.assign(d.daemon.conversations.attached.selection, { model: undefined });
    expect(await d.request("compact")).toMatchObject({ success: false, error: "No model selected" });
    expect(await d.ask("get_state")).toMatchObject({ isCompacting: false });
  });

  it("says when it was compacted already, and that one is going on", async () => {
    const gate = new Gate();
    await start({ summary: () => [gate, ...says("Sum")] });
    await talk("one", "two", "three");
    d.send({ id: "c1", type: "compact" });
    expect(await d.request("compact")).toMatchObject({ error: "Compaction already in progress", code: "busy" });
    gate.open();
    await d.next((frame) => frame["id"] === "c1" && frame["success"] === true);
    expect(await d.request("compact")).toMatchObject({ success: false, error: "Already compacted" });
  });

  it("passes the summariser's failure through and keeps the history", async () => {
    await start({ summary: () => [fail("Your credit is used up", "quota")] });
    await talk("one", "two", "three");
    const before = await messages();
    expect(await d.request("compact")).toMatchObject({ success: false, error: "Your credit is used up" });
    expect(await messages()).toEqual(before);
    expect(await d.ask("get_state")).toMatchObject({ isCompacting: false });
  });

  it("counts an empty and a longer summary as failures", async () => {
    const texts = ["   ", "z".repeat(9000)];
    await start({ summary: () => answers(texts.shift() ?? "", 10) });
    await talk("one", "two", "three");
    expect((await d.request("compact"))["error"]).toMatch(/gave no summary|empty/);
    expect((await d.request("compact"))["error"]).toMatch(
      /The summary \(about 2,2\d\d tokens\) is not smaller than what it would replace/,
    );
    expect((await messages()).map((message) => message.role)).not.toContain("compactionSummary");
  });

  it("is cancelled by abort, twice, and a prompt runs afterwards (case 8A)", async () => {
    const gate = new Gate();
    const asked = new Gate();
    const { provider } = await start({ summary: () => [() => asked.open(), gate, ...says("Sum")] });
    await talk("one", "two", "three");
    const before = await messages();
    d.send({ id: "c1", type: "compact" });
    await asked.passed;
    expect(await d.ask("get_state")).toMatchObject({ isCompacting: true });
    d.send({ id: "a1", type: "abort" });
    d.send({ id: "a2", type: "abort" });
    d.send({ id: "p1", type: "prompt", message: "go on" });
    await d.next((frame) => frame.type === "agent_end", { after: d.frames.length });
    const answersOf = (id: string) => d.frames.filter((frame) => frame.type === "response" && frame["id"] === id);
    expect(answersOf("c1")).toMatchObject([{ success: false, error: "Compaction cancelled", code: "cancelled" }]);
    expect(answersOf("a1")).toMatchObject([{ success: true }]);
    expect(answersOf("a2")).toMatchObject([{ success: true }]);
    expect(provider.aborted).toBe(1);
    expect(await d.ask("get_state")).toMatchObject({ isCompacting: false });
    expect((await messages()).slice(0, before.length)).toEqual(before);
    expect(d.daemon.conversations.attached.log.entries.map((entry) => entry.type)).not.toContain("compaction");
  });

  it("takes the conversation at once, ends the run visibly and delivers what is queued exactly once (case 8B, items 38 and 41)", async () => {
    const gate = new Gate();
    const { provider } = await start({
      answer: (request, turn) =>
        textOf(request.messages.at(-1)) === "slow"
          ? [{ type: "start" }, gate, ...says("never").slice(1)]
          : answers(`answer ${turn} ${"x".repeat(100)}`, 100),
    });
    await talk("one", "two", "three");
    d.send({ id: "p", type: "prompt", message: "slow" });
    await d.next("message_start", { after: d.frames.length });
    const after = d.frames.length;
    d.send({ id: "c2", type: "compact" });
    d.send({ id: "s2", type: "steer", message: "keep me" });
    d.send({ id: "f2", type: "follow_up", message: "and me" });
    d.send({ id: "g", type: "get_state" });
    await d.next((frame) => frame["id"] === "c2" && frame.type === "response", { after });
    expect(d.frames.find((frame) => frame["id"] === "g")).toMatchObject({ data: { isCompacting: true } });
    const ended = d.frames.slice(after).find((frame) => frame.type === "agent_end");
    expect(ended).toBeDefined();
    expect(JSON.stringify(ended)).toContain("Interrupted by compaction");
    await d.next("agent_end", { after: d.frames.findIndex((frame) => frame["id"] === "c2" && frame.type === "response") });
    await d.daemon.conversations.attached.whenIdle();
    const delivered = (text: string) =>
      d.frames.filter((frame) => frame.type === "message_end" && textOf(frame["message"] as never) === text);
    expect(delivered("keep me")).toHaveLength(1);
    expect(delivered("and me")).toHaveLength(1);
    expect(provider.refused).toEqual([]);
    expect(await d.ask("get_state")).toMatchObject({ queuedMessageCount: 0, isCompacting: false });
  });

  it("holds prompts until it is through", async () => {
    const gate = new Gate();
    await start({ summary: () => [gate, ...says("Sum")] });
    await talk("one", "two", "three");
    const after = d.frames.length;
    d.send({ id: "c", type: "compact" });
    expect(await d.request("prompt", { message: "held" })).toMatchObject({ success: true });
    gate.open();
    const end = await d.next("agent_end", { after });
    const answered = d.frames.findIndex((frame) => frame["id"] === "c");
    expect(answered).toBeLessThan(d.frames.indexOf(end));
    expect((await messages()).map((message) => message.role)).toEqual([
      "compactionSummary",
      "user",
      "assistant",
      "user",
      "assistant",
    ]);
  });

  it("is given up when another session takes the place", async () => {
    const gate = new Gate();
    const asked = new Gate();
    const { provider } = await start({ summary: () => [() => asked.open(), gate, ...says("Sum")] });
    await talk("one", "two", "three");
    const { log } = d.daemon.conversations.attached;
    d.send({ id: "c", type: "compact" });
    await asked.passed;
    expect(await d.request("new_session")).toMatchObject({ success: true });
    expect(d.frames.find((frame) => frame["id"] === "c")).toMatchObject({ success: false, error: "Compaction cancelled" });
    expect(provider.aborted).toBe(1);
    expect(await readFile(log.file ?? "", "utf8")).not.toContain('"type":"compaction"');
  });

  it("ignores usage from before it (item 35)", async () => {
    await start({
      answer: () => answers(`long ${"x".repeat(100)}`, 90_000),
      config: "compaction:\n  keepRecentTokens: 40\n  enabled: false\n",
    });
    await talk("one", "two", "three");
    expect((await d.ask("get_state"))["contextUsage"]).toMatchObject({ tokens: 90_005 });
    await d.ask("compact");
    const { tokens } = (await d.ask("get_state"))["contextUsage"] as { tokens: number };
    expect(tokens).toBeLessThan(200);
  });

  it("lets extensions cancel it or make it, and tells them", async () => {
    let answer: unknown = { cancel: true };
    const seen: unknown[] = [];
    const { summaries } = await start({
      more: [
        defineHook(sessionBeforeCompact, (plan) => {
          seen.push([plan.reason, plan.entries.length, plan.turnPrefix.length, plan.customInstructions]);
          return answer as never;
        }),
        defineHook(sessionCompacted, ({ result, fromExtension }) => void seen.push([result.summary, fromExtension])),
      ],
    });
    await talk("one", "two", "three");
    expect(await d.request("compact", { customInstructions: "x" })).toMatchObject({
      success: false,
      error: "Compaction cancelled",
    });
    answer = { result: { summary: "Mine", details: { mine: true } } };
    expect(await d.ask("compact")).toMatchObject({ summary: "Mine", details: { mine: true } });
    expect(seen).toEqual([
      ["manual", 4, 0, "x"],
      ["manual", 4, 0, undefined],
      ["Mine", true],
    ]);
    expect(summaries()).toHaveLength(0);
    expect(d.daemon.conversations.attached.log.entries.at(-1)).toMatchObject({ type: "compaction", fromExtension: true });
  });

  it("looks at the active branch only (item 37)", async () => {
    const { summaries } = await start();
    await talk("one");
    const { log } = d.daemon.conversations.attached;
    const fork = log.leafId;
    await talk("left behind");
    log.branchTo(fork);
    d.daemon.conversations.attached.reload();
    await talk("two", "three");
    await d.ask("compact");
    expect(textOf(summaries()[0]?.messages[0])).not.toContain("left behind");
  });

  it("is there as /compact", async () => {
    const { summaries } = await start();
    await talk("one", "two", "three");
    const after = d.frames.length;
    await d.request("prompt", { message: "/compact the parser" });
    const output = await d.next("command_output", { after });
    expect(output["text"]).toMatch(/^Compacted: about [\d,]+ tokens before, [\d,]+ now$/);
    expect(textOf(summaries()[0]?.messages[0])).toContain("the parser");
    await d.request("prompt", { message: "/compact" });
    expect((await d.next("command_output", { after: d.frames.indexOf(output) + 1 }))["text"]).toBe("Already compacted");
  });

  it("can be overridden like any command", async () => {
    await start({
      more: [overrideCommand("compact", { run: async () => ({ summary: "o", firstKeptEntryId: "x", tokensBefore: 1 }) })],
    });
    expect(await d.ask("compact")).toMatchObject({ summary: "o" });
  });
});

describe("set_auto_compaction", () => {
  it("holds for this process and writes no file (item 9)", async () => {
    await start();
    const before = await readFile(`${d.home}/config.yml`, "utf8");
    expect(await d.ask("get_state")).toMatchObject({ autoCompactionEnabled: true });
    await d.ask("set_auto_compaction", { enabled: false });
    expect(await d.ask("get_state")).toMatchObject({ autoCompactionEnabled: false });
    expect(await readFile(`${d.home}/config.yml`, "utf8")).toBe(before);
    expect(await d.request("set_auto_compaction", { enabled: "no" })).toMatchObject({ success: false, code: "invalid_params" });
  });
});
