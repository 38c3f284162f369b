import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, rmSync, statSync, symlinkSync } from "node:fs";
import { dirname } from "node:path";
import { describe, expect, it } from "vitest";
import { SessionWriteError } from "../../../core/session/errors.ts";
import { SessionLog } from "../../../core/session/log.ts";
import { assistant, closing, created, fileOf, lines, opened, tempDir, user, worker } from "./_helpers.ts";

const mode = (path: string): number => statSync(path).mode & 0o777;

describe("a new session", () => {
  it("leaves no file and no folder before it is materialised (item 47)", () => {
    const dir = tempDir();
    const log = created(dir);
    log.setName("draft", "user");
    log.recordThinkingLevel("high");
    log.close();
    expect(readdirSync(dir)).toEqual([]);
    expect(log.isMaterialized).toBe(false);
  });

  it("is written whole with the first user message, private to the user, then entry by entry", () => {
    const log = created(tempDir());
    log.recordThinkingLevel("low");
    const first = log.append({ type: "message", message: user("hello") });
    log.materialize();
    const file = fileOf(log);
    expect(mode(file)).toBe(0o600);
    expect(mode(dirname(file))).toBe(0o700);
    expect(lines(file).map((line) => JSON.parse(line).type)).toEqual(["session", "thinking_level_change", "message"]);
    const second = log.append({ type: "message", message: assistant("hi") });
    expect(second.parentId).toBe(first.id);
    expect(JSON.parse(lines(file).at(-1) ?? "")).toEqual(second);
  });

  it("in memory never touches the disk", () => {
    const log = created(undefined);
    log.append({ type: "message", message: user("hello") });
    log.materialize();
    expect(log.file).toBeUndefined();
    expect(log.isMaterialized).toBe(false);
    expect(log.context()).toEqual([user("hello")]);
  });

  it("has eight-digit hex ids and a file name with a time-sortable id", () => {
    const log = created(tempDir());
    expect(log.append({ type: "message", message: user("a") }).id).toMatch(/^[0-9a-f]{8}$/);
    expect(log.id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(fileOf(log)).toMatch(/\/--project--\/\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z_[0-9a-f-]{36}\.jsonl$/);
  });

  it("keeps a hostile id inside its folder (case 24)", () => {
    const dir = tempDir();
    const log = closing(SessionLog.create({ cwd: "/project", sessionsDir: dir, id: "../../x" }));
    log.append({ type: "message", message: user("a") });
    log.materialize();
    expect(dirname(fileOf(log))).toBe(`${dir}/--project--`);
  });
});

describe("reopening", () => {
  it("gives what the memory held, U+2028 and its like included (case 1)", async () => {
    const log = created(tempDir());
    log.append({ type: "message", message: user("a\u2028b\u2029c\u0085d\u000be \u{1f9ed} \ud800") });
    log.materialize();
    log.append({ type: "message", message: assistant("\u2028") });
    log.setSlot("todo", { phases: [1] });
    log.setName("n\u00e4me", "auto");
    const before = {
      entries: log.entries,
      context: log.context(),
      name: log.name,
      slot: log.slotValue("todo"),
      leaf: log.leafId,
    };
    log.close();
    const { log: again, report } = await opened(fileOf(log));
    expect(report).toEqual({ damage: [], lostLines: 0, version: 3 });
    expect({
      entries: again.entries,
      context: again.context(),
      name: again.name,
      slot: again.slotValue("todo"),
      leaf: again.leafId,
    }).toEqual(before);
    expect(again.nameSource).toBe("auto");
    expect(again.cwd).toBe("/project");
  });

  it("at the same level and model appends nothing (item 44)", async () => {
    const log = created(tempDir());
    log.recordModel("anthropic", "claude");
    log.recordThinkingLevel("high");
    log.append({ type: "message", message: user("a") });
    log.materialize();
    log.close();
    const before = readFileSync(fileOf(log));
    const { log: again } = await opened(fileOf(log));
    again.recordThinkingLevel(again.thinkingLevel ?? "off");
    again.recordModel("anthropic", "claude");
    again.close();
    expect(readFileSync(fileOf(log)).equals(before)).toBe(true);
  });

  it("after close nothing is taken in any more", () => {
    const log = created(tempDir());
    log.append({ type: "message", message: user("a") });
    log.materialize();
    const bytes = readFileSync(fileOf(log));
    log.close();
    expect(() => log.append({ type: "message", message: user("late") })).toThrow(/the session is closed/);
    expect(log.entries).toHaveLength(1);
    expect(readFileSync(fileOf(log)).equals(bytes)).toBe(true);
    expect(existsSync(`${fileOf(log)}.lock`)).toBe(false);
  });

  it("for reading only takes no lock and refuses to write", async () => {
    const log = created(tempDir());
    log.append({ type: "message", message: user("a") });
    log.materialize();
    const { log: reader } = await opened(fileOf(log), true);
    expect(reader.entries).toEqual(log.entries);
    expect(() => reader.append({ type: "message", message: user("b") })).toThrow(/open for reading only/);
  });
});

describe("branching", () => {
  it("copies the path before a user message with its labels and leaves the parent byte-identical (item 43)", async () => {
    const log = created(tempDir());
    const first = log.append({ type: "message", message: user("one") });
    log.materialize();
    log.append({ type: "message", message: assistant("1") });
    log.append({ type: "label", targetId: first.id, label: "start" });
    log.setName("parent", "user");
    const second = log.append({
      type: "message",
      message: {
        role: "user",
        content: [
          { type: "text", text: "tw" },
          { type: "image", data: "AA==", mimeType: "image/png" },
          { type: "text", text: "o" },
        ],
        timestamp: 4,
      },
    });
    log.append({ type: "message", message: assistant("2") });
    const parentBytes = readFileSync(fileOf(log));

    const { log: branch, text } = log.branchCopy(second.id);
    closing(branch);
    expect(text).toBe("two");
    expect(existsSync(fileOf(branch))).toBe(false);
    branch.append({ type: "message", message: user("other") });
    branch.materialize();
    branch.append({ type: "message", message: assistant("3") });
    expect(branch.context()).toEqual([user("one"), assistant("1"), user("other"), assistant("3")]);
    expect([...branch.labels]).toEqual([[first.id, "start"]]);
    expect(branch.name).toBeUndefined();
    expect(branch.parentSession).toBe(log.file);
    expect(dirname(fileOf(branch))).toBe(dirname(fileOf(log)));
    expect(lines(fileOf(branch)).filter((line) => JSON.parse(line).type === "session")).toHaveLength(1);
    expect(readFileSync(fileOf(log)).equals(parentBytes)).toBe(true);
    branch.close();
    const { log: again, report } = await opened(fileOf(branch));
    expect(report.damage).toEqual([]);
    expect(again.entries).toEqual(branch.entries);
  });

  it("at the first message gives an empty session with a parent; one header once something is said (item 43)", () => {
    const log = created(tempDir());
    const first = log.append({ type: "message", message: user("one") });
    log.materialize();
    const { log: branch } = log.branchCopy(first.id);
    closing(branch);
    expect(branch.entries).toEqual([]);
    branch.append({ type: "message", message: user("again") });
    branch.materialize();
    expect(lines(fileOf(branch)).map((line) => JSON.parse(line).type)).toEqual(["session", "message"]);
  });

  it("copies without names and labels between the entries leave one sound chain and what a compaction kept", async () => {
    const log = created(tempDir());
    const one = log.append({ type: "message", message: user("one") });
    log.append({ type: "label", targetId: one.id, label: "x" });
    log.setName("n", "user");
    const named = log.leafId ?? "";
    log.append({ type: "message", message: assistant("1") });
    log.append({ type: "compaction", summary: "S", firstKeptEntryId: named, tokensBefore: 1 });
    const copy = closing(log.copyPath(log.leafId));
    copy.materialize();
    copy.close();
    const { log: again, report } = await opened(fileOf(copy));
    expect(report.damage).toEqual([]);
    expect(again.path()).toEqual(again.entries);
    expect(again.entries.map((entry) => entry.type)).toEqual(["message", "message", "compaction", "label"]);
    expect(again.context().map((message) => message.role)).toEqual(log.context().map((message) => message.role));
  });

  it("refuses entries that are no user messages, with the wire's words", () => {
    const log = created(undefined);
    log.append({ type: "message", message: user("one") });
    const answer = log.append({ type: "message", message: assistant("1") });
    for (const id of [answer.id, "00000000", ""]) expect(() => log.branchCopy(id)).toThrow("Invalid entry ID for branching");
  });

  it("lists user messages of all branches that have text", () => {
    const log = created(undefined);
    const one = log.append({ type: "message", message: user("one") });
    log.append({ type: "message", message: assistant("1") });
    log.append({ type: "message", message: user("  ") });
    log.branchTo(one.id);
    const two = log.append({ type: "message", message: user("two") });
    expect(log.userMessages()).toEqual([
      { entryId: one.id, text: "one" },
      { entryId: two.id, text: "two" },
    ]);
    expect(log.context()).toEqual([user("one"), user("two")]);
  });
});

describe("names", () => {
  it("are stripped of control characters, and a user's name is never replaced by an automatic one (case 24)", () => {
    const log = created(undefined);
    expect(log.setName("  auto  ", "auto")).toBe(true);
    expect(log.setName("../../evil/name\n\u001b[2J", "user")).toBe(true);
    expect(log.name).toBe("../../evil/name");
    expect(log.setName("later", "auto")).toBe(false);
    expect(log.name).toBe("../../evil/name");
    for (const empty of ["", "  ", "\u001b[2J\n"])
      expect(() => log.setName(empty, "user")).toThrow("Session name cannot be empty");
  });
});

describe("what cannot be written", () => {
  it("malformed entries are refused before anything is kept (item 46)", () => {
    const log = created(tempDir());
    log.append({ type: "message", message: user("one") });
    log.materialize();
    const bytes = readFileSync(fileOf(log));
    const bad: unknown[] = [
      { type: "custom_message", customType: "x", content: { not: "content" }, display: true },
      { type: "custom_message", customType: "x", content: [{ type: "text" }], display: true },
      { type: "custom", customType: 7 },
      { type: "message", message: { role: "user" } },
      { type: "message", message: { role: "nobody", content: "" } },
      { type: "session" },
      { type: "custom", customType: "x", data: 1n },
    ];
    for (const draft of bad)
      expect(
        () => log.append(draft as never),
        JSON.stringify(draft, (_, v) => String(v)),
      ).toThrow(TypeError);
    expect(readFileSync(fileOf(log)).equals(bytes)).toBe(true);
    expect(log.entries).toHaveLength(1);
  });

  it("entries survive a file that cannot be written and follow as soon as it can (item 48)", async () => {
    const log = created(tempDir());
    log.append({ type: "message", message: user("one") });
    log.materialize();
    const file = fileOf(log);
    rmSync(file);
    mkdirSync(file);
    expect(() => log.append({ type: "message", message: user("two") })).toThrow(SessionWriteError);
    expect(log.writeError).toBeInstanceOf(SessionWriteError);
    expect(log.context()).toEqual([user("one"), user("two")]);
    rmdirSync(file);
    log.append({ type: "message", message: user("three") });
    expect(log.writeError).toBeUndefined();
    log.close();
    expect((await opened(file)).log.entries).toEqual(log.entries);
  });

  it.runIf(process.platform === "linux")("a full disk is a SessionWriteError (item 48)", () => {
    const log = created(tempDir());
    log.append({ type: "message", message: user("one") });
    log.materialize();
    rmSync(fileOf(log));
    symlinkSync("/dev/full", fileOf(log));
    expect(() => log.append({ type: "message", message: user("two") })).toThrow(/ENOSPC/);
    rmSync(fileOf(log));
  });

  it("a write cut short by a file size limit tears one line at most, and the next writer fences it off (item 48)", async () => {
    const dir = tempDir();
    const limited = worker({ fileBlocks: 64 });
    const { file } = await limited.ask({ do: "create", sessionsDir: dir });
    const answer = await limited.ask({ do: "append", text: "x".repeat(1000), count: 100 });
    expect(answer["name"]).toBe("SessionWriteError");
    await limited.kill();
    const { log, report } = await opened(String(file));
    expect(report.lostLines).toBe(1);
    expect(report.damage[0]?.reason).toBe("torn end");
    const kept = log.entries.length;
    expect(kept).toBeGreaterThan(40);
    log.append({ type: "message", message: user("after") });
    log.close();
    const again = await opened(String(file));
    expect(again.log.entries).toHaveLength(kept + 1);
    expect(again.report.damage).toEqual([expect.objectContaining({ reason: "unreadable" })]);
    expect(again.log.context().at(-1)).toEqual(user("after"));
  });
});

it("an entry is in the file when append returns: kill -9 right after loses nothing (item 45)", async () => {
  const w = worker();
  const { file } = await w.ask({ do: "create", sessionsDir: tempDir() });
  const { id } = await w.ask({ do: "append", text: "y".repeat(5000), count: 200 });
  await w.kill();
  const { log, report } = await opened(String(file));
  expect(report.lostLines).toBe(0);
  expect(log.entries).toHaveLength(201);
  expect(log.leafId).toBe(id);
});

it("stats count and sum what is in context", () => {
  const log = created(undefined);
  log.append({ type: "message", message: user("one") });
  log.append({ type: "message", message: assistant([{ type: "toolCall", id: "c1", name: "task", arguments: {} }], "toolUse") });
  log.append({
    type: "message",
    message: {
      role: "toolResult",
      toolCallId: "c1",
      toolName: "task",
      content: [],
      details: { usage: { input: 1, output: 2, cost: { total: 1 } } },
      isError: false,
      timestamp: 3,
    },
  });
  expect(log.stats()).toEqual({
    userMessages: 1,
    assistantMessages: 1,
    toolCalls: 1,
    toolResults: 1,
    totalMessages: 3,
    tokens: { input: 11, output: 7, reasoning: 0, cacheRead: 0, cacheWrite: 0, total: 18 },
    cost: 1.3,
  });
});

it("a long copy is written in slices; what is appended meanwhile is in the file", async () => {
  const log = created(tempDir());
  for (let i = 0; i < 20_000; i++) log.append({ type: "message", message: assistant("x".repeat(300)) });
  const last = log.append({ type: "message", message: user("branch here") });
  log.materialize();
  const { log: copy } = log.branchCopy(last.id);
  closing(copy);
  const done = copy.materializeInSlices();
  let ticks = 0;
  const timer = setInterval(() => {
    ticks++;
    if (!copy.isMaterialized) copy.append({ type: "message", message: user(`meanwhile ${ticks}`) });
  }, 1);
  await done;
  clearInterval(timer);
  expect(ticks).toBeGreaterThan(1);
  expect(copy.isMaterialized).toBe(true);
  copy.append({ type: "message", message: user("after") });
  expect(readdirSync(dirname(fileOf(copy))).filter((name) => name.includes(".tmp-"))).toEqual([]);
  copy.close();
  const { log: again, report } = await opened(fileOf(copy));
  expect(report.damage).toEqual([]);
  expect(again.entries).toEqual(copy.entries);
});
