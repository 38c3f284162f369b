// items 42 to 50 of agent-semantics §12, on the built daemon.
import { existsSync, mkdirSync, readFileSync, rmdirSync, rmSync } from "node:fs";
import { describe, expect, it } from "vitest";
import {
  ask,
  prompt,
  request,
  sessionFiles,
  sessionLines,
  sessionText,
  useProcesses,
  userMessage,
  wait,
} from "../cases/_support.ts";
import { BIN } from "../support/process.ts";

const use = useProcesses();

async function start(files: Record<string, string> = {}) {
  const service = await use.service();
  service.otherwise({ text: "said" });
  const daemon = use.start({ ...service.daemon, files });
  await wait(daemon, (frame) => frame.type === "available_commands_update");
  return { service, daemon };
}

describe("sessions", () => {
  it("item 42: a file that is empty, garbage or cut is not changed by a switch that fails, and a cut one keeps what it has", async () => {
    const { daemon } = await start();
    const whole = sessionText(daemon.cwd, [userMessage("one"), userMessage("two")]);
    for (const [name, text] of [
      ["empty", ""],
      ["garbage", "\u0000\u0001 no session\n{}"],
      ["other", '{"type":"other"}\n'],
    ] as const) {
      const file = daemon.write(`${name}.jsonl`, text);
      expect(await request(daemon, "switch_session", { sessionPath: file })).toMatchObject({ success: false });
      expect(readFileSync(file, "utf8")).toBe(text);
    }
    const cut = daemon.write("cut.jsonl", whole.slice(0, -20));
    await ask(daemon, "switch_session", { sessionPath: cut });
    await prompt(daemon, "three");
    expect(readFileSync(cut, "utf8").startsWith(whole.slice(0, -20))).toBe(true);
    const texts = JSON.stringify(await ask(daemon, "get_messages"));
    for (const text of ["one", "three", "said"]) expect(texts).toContain(text);
  });

  it("item 43: a branch has one header and gets what comes after it; the parent stays as it was", async () => {
    const { daemon } = await start();
    await prompt(daemon, "first question");
    const [parent = ""] = sessionFiles(daemon.home);
    const before = readFileSync(parent, "utf8");
    const { messages } = (await ask(daemon, "get_branch_messages")) as { messages: { entryId: string }[] };
    await ask(daemon, "branch", { entryId: messages[0]?.entryId });
    await prompt(daemon, "another way");
    const child = (await ask(daemon, "get_state"))["sessionFile"] as string;
    expect(child).not.toBe(parent);
    expect(readFileSync(parent, "utf8")).toBe(before);
    const lines = sessionLines(child);
    expect(lines.filter((line) => line["type"] === "session")).toHaveLength(1);
    expect(JSON.stringify(lines)).toContain("another way");
  });

  it("item 44: opening a session and setting what is set appends nothing", async () => {
    const { daemon } = await start();
    await ask(daemon, "set_thinking_level", { level: "low" });
    await prompt(daemon, "one");
    const file = (await ask(daemon, "get_state"))["sessionFile"] as string;
    const before = readFileSync(file, "utf8");
    await ask(daemon, "new_session");
    await ask(daemon, "switch_session", { sessionPath: file });
    await ask(daemon, "set_thinking_level", { level: "low" });
    expect(await ask(daemon, "get_state")).toMatchObject({ thinkingLevel: "low" });
    expect(readFileSync(file, "utf8")).toBe(before);
  });

  it("item 46: what an extension gives as a message is refused when it is none, and the session opens again", async () => {
    const { service, daemon } = await start({
      "extensions/bad.ts": `export default function (pi) {
  pi.registerCommand("bad", { description: "Sends nonsense", handler: async () => {
    pi.sendMessage({ customType: "x", content: [{ type: "text", text: 5 }, { type: "nonsense" }], display: true });
  } });
}
`,
    });
    await prompt(daemon, "one");
    const after = daemon.frames.length;
    await request(daemon, "prompt", { message: "/bad" });
    await wait(
      daemon,
      (frame) => frame.type === "extension_error" || frame.type === "prompt_result" || frame.type === "agent_end",
      after,
    );
    const file = (await ask(daemon, "get_state"))["sessionFile"] as string;
    await ask(daemon, "new_session");
    await ask(daemon, "switch_session", { sessionPath: file });
    await prompt(daemon, "two");
    expect(service.requests.filter((entry) => entry.refusal !== undefined)).toEqual([]);
    // What is no content block became the text of one.
    const custom = sessionLines(file).find((line) => line["type"] === "custom_message");
    for (const block of (custom?.["content"] ?? []) as { type: string; text: unknown }[]) {
      expect(block.type).toBe("text");
      expect(block.text).toBeTypeOf("string");
    }
  });

  it("item 47: a session without messages leaves no file and is not listed", async () => {
    const { daemon } = await start();
    await ask(daemon, "set_session_name", { name: "nothing yet" });
    await ask(daemon, "new_session");
    expect(existsSync(`${daemon.home}/sessions`) ? sessionFiles(daemon.home) : []).toEqual([]);
    expect(JSON.stringify(await ask(daemon, "list_sessions").catch(() => ({})))).not.toContain("nothing yet");
    await daemon.end();
    expect(existsSync(`${daemon.home}/sessions`) ? sessionFiles(daemon.home) : []).toEqual([]);
  });

  it("item 48: a full disk is told, the run goes on in memory, and what was lost shows in the exit code", async () => {
    const service = await use.service();
    service.otherwise({ text: "z".repeat(40_000) });
    // No file may grow beyond 64 blocks of 512 bytes; without the signal the write fails as on a full disk.
    const limited = `trap '' XFSZ; ulimit -f 64; exec "${process.execPath}" "${BIN}" "$@"`;
    const daemon = use.start({ ...service.daemon, command: ["sh", "-c", limited, "sh"] });
    await wait(daemon, "ready");
    await prompt(daemon, "one");
    await prompt(daemon, "two");
    const told = daemon.frames.find((frame) => frame.type === "notice" && frame["level"] === "error");
    expect(told).toMatchObject({ source: "session-persistence" });
    expect((await ask(daemon, "get_messages"))["messages"]).toHaveLength(4);
    expect((await ask(daemon, "get_last_assistant_text"))["text"]).toHaveLength(40_000);
    const file = String((await ask(daemon, "get_state"))["sessionFile"]);
    expect(await daemon.end()).toBe(1);
    expect(daemon.frames.at(-1)).toMatchObject({ type: "notice", level: "error", message: expect.stringContaining(file) });
    expect(daemon.stderr()).toContain(file);
  });

  it("item 48: what there is room for again is written, and the exit code says that all is well", async () => {
    const { service, daemon } = await start();
    await prompt(daemon, "one");
    const file = String((await ask(daemon, "get_state"))["sessionFile"]);
    // Nothing can be written into a folder in the place of the file.
    rmSync(file);
    mkdirSync(file);
    service.script({ text: "in memory" });
    const frames = await prompt(daemon, "two");
    expect(frames.filter((frame) => frame.type === "notice")).toMatchObject([{ source: "session-persistence", level: "error" }]);
    rmdirSync(file);
    expect(await daemon.end()).toBe(0);
    const texts = JSON.stringify(sessionLines(file));
    for (const text of ["one", "two", "in memory"]) expect(texts).toContain(text);
  });

  it("item 50: what belongs to the old session does not land in the one switched to", async () => {
    const { service, daemon } = await start();
    await prompt(daemon, "old one");
    const old = (await ask(daemon, "get_state"))["sessionFile"] as string;
    service.script({ text: "late answer of the old", chunk: 4, hold: new Promise(() => {}), holdAfter: 3 });
    await ask(daemon, "prompt", { message: "old two" });
    await service.request(2);
    await ask(daemon, "follow_up", { message: "old three" });
    daemon.send({ id: "b", type: "bash", command: "sleep 0.3; echo late bash" });
    daemon.send({ id: "n", type: "new_session" });
    expect(await wait(daemon, (frame) => frame["id"] === "n", 0)).toMatchObject({ success: true });
    expect(await wait(daemon, (frame) => frame["id"] === "b", 0)).toMatchObject({ success: true });
    await prompt(daemon, "fresh");
    const fresh = (await ask(daemon, "get_state"))["sessionFile"] as string;
    expect(fresh).not.toBe(old);
    const text = readFileSync(fresh, "utf8");
    for (const foreign of ["old one", "old two", "old three", "late bash"]) expect(text).not.toContain(foreign);
  });
});
