// Session files as the host meets them: what is told about a damaged or moved one, and that work goes on in it.
import { existsSync, mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { encodeCwd } from "../../../core/session/store.ts";
import { startDaemon, type TestDaemon } from "../../../core/testing.ts";
import type { Frame } from "../../../protocol/frame.ts";
import { afterTest } from "../../support/clean-up.ts";
import { assistant, call, user } from "./_helpers.ts";

async function start(): Promise<TestDaemon> {
  const daemon = await startDaemon({ watch: false });
  afterTest(() => daemon.stop());
  return daemon;
}

const header = (cwd: unknown) => ({ type: "session", version: 3, id: "0199-x", timestamp: "2026-01-01T00:00:00.000Z", cwd });
const entry = (id: string, parentId: string | null, message: unknown) =>
  JSON.stringify({ type: "message", id, parentId, timestamp: "2026-01-01T00:00:00.000Z", message });
const first = entry("a1", null, user("one"));
const second = entry("a2", "a1", assistant("two"));

function stored(daemon: TestDaemon, name: string, content: string | Buffer): string {
  const file = join(daemon.home, "stored", `${name}.jsonl`);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
  return file;
}

/** A call with arguments that JSON.parse takes and JSON.stringify may not. */
function deep(levels: number): string {
  const nested = `${"[".repeat(levels)}${"]".repeat(levels)}`;
  return JSON.stringify({
    ...JSON.parse(second),
    id: `d${levels}`,
    message: assistant([call("c1", "ls", { x: "HERE" })], "toolUse"),
  }).replace('"HERE"', nested);
}

/** Opens a file and gives the notices that came of it. */
async function opening(daemon: TestDaemon, file: string): Promise<string[]> {
  const after = daemon.frames.length;
  await daemon.ask("switch_session", { sessionPath: file });
  const told = daemon.frames.slice(after).filter((frame) => frame.type === "notice" && frame["source"] === "session");
  expect(told.map((frame) => frame["level"])).toEqual(told.map(() => "warning"));
  return told.map((frame) => String(frame["message"]));
}

describe("what damage cost is told once, with its place, when the file is opened", () => {
  const nul = Buffer.alloc(600);
  const join3 = (...parts: (string | Buffer)[]) => Buffer.concat(parts.map((part) => Buffer.from(part)));
  const damages: [name: string, tail: Buffer, told: RegExp | undefined][] = [
    ["sound", join3(first, "\n", second, "\n"), undefined],
    ["without a last LF", join3(first, "\n", second), undefined],
    ["with CRLF and blank lines", join3(first, "\r\n\r\n", second, "\r\n"), undefined],
    ["glued lines", join3(first, second, "\n"), undefined],
    ["half a line at the end", join3(first, "\n", second, "\n", second.slice(0, 40)), /1 damaged line .*byte \d+ \(torn end\)/],
    ["a run of NUL in the middle", join3(first, "\n", nul, "\n", second, "\n"), /1 damaged line .*\(unreadable\)/],
    ["a run of NUL before an entry", join3(first, "\n", nul, second, "\n"), /1 damaged line .*\(partly unreadable\)/],
    ["what is no entry", join3(first, "\n", '{"type":"message"}\n', second, "\n"), /1 damaged line .*\(not an entry\)/],
    [
      "what is nested too deep",
      join3(first, "\n", ...[2_100, 4_000, 100_000].flatMap((levels) => [deep(levels), "\n"]), second, "\n"),
      /3 damaged lines .*\(not an entry\)/,
    ],
    ["many", join3(first, "\n", "x\n".repeat(500), second, "\n"), /500 damaged lines .*byte \d+ \(unreadable\), .*\.\.\./],
  ];

  it("and both sound entries are there, the file is not changed, and the next turn works", async () => {
    const daemon = await start();
    for (const [name, tail, told] of damages) {
      const content = Buffer.concat([Buffer.from(`${JSON.stringify(header(daemon.cwd))}\n`), tail]);
      const file = stored(daemon, name, content);
      expect(await opening(daemon, file), name).toEqual(told === undefined ? [] : [expect.stringMatching(told)]);
      expect(readFileSync(file).equals(content)).toBe(true);
      expect(await daemon.ask("get_messages"), name).toMatchObject({ messages: [user("one"), { role: "assistant" }] });
      const end = (await daemon.prompt("three")).at(-1);
      expect(end, name).toMatchObject({ type: "agent_end", messages: [{ role: "user" }, { stopReason: "stop" }] });
      expect(readFileSync(file).subarray(0, content.length).equals(content)).toBe(true);
    }
  });
});

describe("a session whose working directory cannot be used", () => {
  it("goes on in the daemon's, and says so; a branch of it does too", async () => {
    const daemon = await start();
    const aFile = stored(daemon, "in-the-way", "");
    for (const cwd of ["/no/such/folder", "relative", "", undefined, aFile, join(aFile, "below")]) {
      const file = stored(
        daemon,
        "gone",
        `${JSON.stringify(header(cwd))}\n${first}\n${second}\n${entry("a3", "a2", user("x"))}\n`,
      );
      expect(await opening(daemon, file)).toEqual([expect.stringContaining(`goes on in "${daemon.cwd}"`)]);
      expect(await daemon.callTool("bash", { command: "pwd" })).toMatchObject({ text: expect.stringContaining(daemon.cwd) });
      await daemon.ask("branch", { entryId: "a3" });
      expect(await daemon.ask("bash", { command: "pwd" })).toMatchObject({ output: `${daemon.cwd}\n` });
      await daemon.ask("new_session");
    }
  });

  it("which it has keeps it", async () => {
    const daemon = await start();
    const elsewhere = dirname(daemon.write("elsewhere/x", ""));
    const file = stored(daemon, "there", `${JSON.stringify(header(elsewhere))}\n${first}\n`);
    expect(await opening(daemon, file)).toEqual([]);
    expect(await daemon.ask("bash", { command: "pwd" })).toMatchObject({ output: `${elsewhere}\n` });
  });
});

describe("--continue", () => {
  /** A home with sessions of its working directory, the last one the newest. */
  async function home(): Promise<{ home: string; cwd: string; put(id: string, version: number, tail?: string): string }> {
    const { home, cwd } = await start();
    let at = 1_000_000_000;
    const put = (id: string, version: number, tail = `${first}\n${second}\n`) => {
      const file = join(home, "sessions", encodeCwd(cwd), `2026-01-01T00-00-00-000Z_${id}.jsonl`);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, `${JSON.stringify({ ...header(cwd), id, version })}\n${tail}`);
      utimesSync(file, at, at++);
      return file;
    };
    return { home, cwd, put };
  }
  async function continued(place: { home: string; cwd: string }) {
    const daemon = await startDaemon({ ...place, watch: false, options: { continue: true } });
    afterTest(() => daemon.stop());
    return daemon;
  }
  const idOf = async (daemon: TestDaemon) => (await daemon.ask("get_state"))["sessionId"];

  it("passes over what does not open, and says so", async () => {
    const { put, ...place } = await home();
    put("sound", 3);
    const future = put("future", 4);
    put("empty", 3, "");
    const daemon = await continued(place);
    expect(await idOf(daemon)).toBe("sound");
    const told = daemon.frames.filter((frame) => frame.type === "notice" && String(frame["message"]).includes("sessions"));
    expect(told).toMatchObject([{ level: "warning", message: expect.stringContaining(future) }]);
    expect(readFileSync(future, "utf8")).toContain('"version":4');
  });

  it("of several daemons at once gives each a session of its own, a new one when there are no more", async () => {
    const { put, ...place } = await home();
    for (const id of ["one", "two", "three"]) put(id, 3);
    const daemons = await Promise.all([1, 2, 3, 4].map(() => continued(place)));
    const ids = await Promise.all(daemons.map(idOf));
    expect(new Set(ids).size).toBe(4);
    expect(ids).toEqual(expect.arrayContaining(["one", "two", "three"]));
    for (const daemon of daemons) {
      expect(daemon.frames.filter((frame) => frame.type === "notice" && frame["level"] === "error")).toEqual([]);
    }
  });
});

it("a branch of a long session has no file before its first message, and a whole one before the model is asked", async () => {
  const daemon = await start();
  const lines = Array.from({ length: 3000 }, (_, n) =>
    entry(`e${n}`, n === 0 ? null : `e${n - 1}`, n % 2 === 0 ? user("u") : assistant("a")),
  );
  const file = stored(daemon, "long", [JSON.stringify(header(daemon.cwd)), ...lines, ""].join("\n"));
  const before = readFileSync(file, "utf8");
  await daemon.ask("switch_session", { sessionPath: file });
  await daemon.ask("branch", { entryId: "e2998" });
  const branch = String((await daemon.ask("get_state"))["sessionFile"]);
  expect(existsSync(branch)).toBe(false);
  daemon.send({ type: "prompt", message: "another way" });
  const said = (frame: Frame) => frame.type === "message_end" && (frame["message"] as { role: string }).role === "user";
  await daemon.next(said, { after: 0 });
  const written = readFileSync(branch, "utf8").trimEnd().split("\n");
  expect(written.slice(1, 2999).map((line) => JSON.parse(line).id)).toEqual(
    lines.slice(0, 2998).map((line) => JSON.parse(line).id),
  );
  expect(JSON.parse(written[2999] ?? "")).toMatchObject({ parentId: "e2997", message: { role: "user" } });
  await daemon.next("agent_end", { after: 0 });
  expect(readFileSync(file, "utf8")).toBe(before);
  const beside = readdirSync(dirname(branch)).filter((name) => name.includes(".tmp"));
  expect(beside).toEqual([]);
});

describe("get_tree", () => {
  interface Node {
    id: string;
    text?: string;
    children: Node[];
  }
  /** A tree in short: `a1(a2 a3)`. */
  const shape = (nodes: unknown): string =>
    (nodes as Node[]).map(({ id, children }) => (children.length === 0 ? id : `${id}(${shape(children)})`)).join(" ");
  const chain = (cwd: string, length: number) =>
    [
      JSON.stringify(header(cwd)),
      ...Array.from({ length }, (_, n) => entry(`e${n}`, n === 0 ? null : `e${n - 1}`, user(`${n}`))),
      "",
    ].join("\n");

  it("hangs entries where the conversation has them: below what stands in for a lost or repeated one", async () => {
    const daemon = await start();
    const lines = [
      JSON.stringify(header(daemon.cwd)),
      first,
      second,
      entry("b1", "lost", user("below a lost one")),
      entry("a1", "b1", user("an id again")),
      entry("c1", "a1", user("below it")),
      entry("d1", "a2", user("another branch")),
      entry("s1", "s1", user("its own parent")),
      "",
    ];
    await daemon.ask("switch_session", { sessionPath: stored(daemon, "tree", lines.join("\n")) });
    const { tree } = await daemon.ask("get_tree");
    expect(shape(tree)).toBe("a1(a2(b1(a1~2(c1)) d1(s1)))");
  });

  it("of a session that is too deep for a frame is refused in words, and one that is not is whole", async () => {
    const daemon = await start();
    for (const [length, fits] of [
      [1500, true],
      [1501, false],
    ] as const) {
      await daemon.ask("switch_session", { sessionPath: stored(daemon, `${length}`, chain(daemon.cwd, length)) });
      const answer = await daemon.request("get_tree");
      if (fits) {
        let nodes = (answer["data"] as { tree: Node[] }).tree;
        let count = 0;
        for (; nodes[0] !== undefined; count++) nodes = nodes[0].children;
        expect(count).toBe(length);
      } else {
        expect(answer).toMatchObject({ success: false, code: "too_large", error: expect.stringContaining("get_entries") });
      }
    }
  });

  it("shows the beginning of a text without cutting a character", async () => {
    const daemon = await start();
    const file = stored(
      daemon,
      "long",
      `${JSON.stringify(header(daemon.cwd))}\n${entry("a1", null, user("\u{1f9ed}".repeat(100_000)))}\n`,
    );
    await daemon.ask("switch_session", { sessionPath: file });
    expect(await daemon.ask("get_tree")).toMatchObject({ tree: [{ id: "a1", text: "\u{1f9ed}".repeat(200) }] });
  });
});
