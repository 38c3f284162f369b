// The example extensions, run unmodified from a user's folder and driven through frames.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { TestDaemon } from "../../../core/testing.ts";
import { answerOf, errors, example, notices, start, toolResults, uiFrames } from "./_start.ts";

/** A tool to stand in for the built-in of the name, so that nothing is written. */
const recorder = `
import { Type } from "typebox";
export default function (pi) {
  pi.registerTool({
    name: "write",
    description: "Records",
    parameters: Type.Object({ path: Type.String(), content: Type.String() }),
    async execute(id, { path }) { return "wrote " + path; },
  });
}`;

describe("examples", () => {
  let daemon: TestDaemon;
  const answers = { select: "No" };

  beforeAll(async () => {
    const names = [
      "permission-gate",
      "protected-paths",
      "input-transform",
      "status-line",
      "progress-tool",
      "bus-sender",
      "bus-listener",
      "session-name",
      "provider",
    ];
    const units = Object.fromEntries(names.map((name) => [`${name}.ts`, example(name)]));
    daemon = await start({ ...units, "recorder.ts": recorder }, { answers: { select: () => ({ value: answers.select }) } });
  });
  afterAll(() => daemon.stop());

  it("all load without an error", () => {
    expect(errors(daemon)).toEqual([]);
  });

  it("permission-gate: a refused command does not run, an allowed one does, a harmless one is not asked about", async () => {
    answers.select = "No";
    const refused = await daemon.prompt('call bash {"command": "sudo true"}');
    expect(toolResults(refused)).toEqual([{ name: "bash", text: expect.stringContaining("Refused by the user"), isError: true }]);
    const before = uiFrames(daemon, "select").length;
    answers.select = "Yes";
    const allowed = await daemon.prompt('call bash {"command": "echo ok; chmod 777 /dev/null 2>&1 | head -c 0"}');
    expect(toolResults(allowed)[0]?.text).toContain("ok");
    await daemon.prompt('call bash {"command": "echo harmless"}');
    expect(uiFrames(daemon, "select").length).toBe(before + 1);
  });

  it("protected-paths: blocks with its reason, and a changed input is what the tool gets", async () => {
    const blocked = await daemon.prompt('call write {"path": "a/.env", "content": "x"}');
    expect(toolResults(blocked)[0]).toMatchObject({ text: expect.stringContaining('"a/.env" is protected'), isError: true });
    expect(notices(daemon)).toContain("Blocked a write to a/.env");
    const moved = await daemon.prompt('call write {"path": "tmp:x", "content": "x"}');
    expect(toolResults(moved)).toEqual([{ name: "write", text: "wrote scratch-x", isError: false }]);
  });

  it("input-transform: changes the prompt, or takes it so that no agent runs", async () => {
    const changed = await daemon.prompt("?quick what is it");
    expect(answerOf(changed)).toContain("Answer briefly: what is it");
    const handled = await daemon.prompt("ping");
    expect(notices(daemon)).toContain("pong");
    expect(handled.some((frame) => frame.type === "agent_start")).toBe(false);
  });

  it("status-line: session_start, turns counted from 0 within a run, agent_end with the run's messages", async () => {
    const from = daemon.frames.length;
    await daemon.prompt("hello");
    await daemon.next((frame) => frame["statusText"] === "Done: 2 messages", { after: from });
    const texts = uiFrames(daemon, "setStatus").map((frame) => String(frame["statusText"]));
    expect(texts[0]).toBe("Ready");
    expect(texts.at(-2)).toMatch(/^● Turn \d+ \(0\)$/);
  });

  it("progress-tool: parameters are checked, progress is streamed, details are kept", async () => {
    const frames = await daemon.prompt('call countdown {"from": 3, "label": "Go"}');
    const updates = frames.filter((frame) => frame.type === "tool_execution_update");
    expect(updates.length).toBeGreaterThan(0);
    expect(updates[0]).toMatchObject({ partialResult: { details: { left: expect.any(Number) } } });
    const end = frames.find((frame) => frame.type === "tool_execution_end");
    expect(end).toMatchObject({
      isError: false,
      result: { content: [{ type: "text", text: `Go in ${daemon.cwd}` }], details: { from: 3 } },
    });
    const invalid = await daemon.prompt('call countdown {"from": "many"}');
    expect(toolResults(invalid)[0]).toMatchObject({ isError: true, text: expect.stringContaining("from") });
  });

  it("bus pair: what one unit sends the other hears; a listener that throws is its own affair", async () => {
    const from = daemon.frames.length;
    await daemon.prompt("/announce hello");
    await daemon.next((frame) => (frame["message"] as { customType?: string } | undefined)?.customType === "announcement", {
      after: from,
    });
    await daemon.prompt("/announce fail");
    const error = await daemon.next("extension_error", { after: from });
    expect(error).toMatchObject({ event: "events:pair:announced", error: "The listener failed" });
    expect(String(error["extensionPath"])).toContain("bus-listener.ts");
  });

  it("session-name: flags, names, entries and the branch", async () => {
    const from = daemon.frames.length;
    await daemon.prompt("/name report");
    const notice = await daemon.next((frame) => frame["method"] === "notify", { after: from });
    expect(notice["message"]).toMatch(/^Work: report; 1 notes; branch of \d+$/);
    expect((await daemon.ask("get_state"))["sessionName"]).toBe("Work: report");
  });

  it("provider: its models can be chosen and answer through its own stream, with usage and cost", async () => {
    await daemon.ask("set_model", { provider: "shouting", modelId: "shout-1" });
    const frames = await daemon.prompt("be loud");
    expect(answerOf(frames)).toContain("BE LOUD");
    const end = frames.findLast((frame) => frame.type === "message_end");
    const message = end?.["message"] as { usage: { input: number; cost: { total: number } }; provider: string };
    expect(message.provider).toBe("shouting");
    expect(message.usage).toMatchObject({ input: 10 });
    expect(message.usage.cost.total).toBeGreaterThan(0);
    await daemon.ask("set_model", { provider: "offline", modelId: "echo" });
  });
});

describe("ui-tour", () => {
  it("every UI method reaches the host, or says what protocol-facts §4.4 says", async () => {
    const daemon = await start(
      { "ui-tour.ts": example("ui-tour") },
      {
        answers: {
          select: { value: "two" },
          confirm: (frame) => (frame["title"] === "Too late" ? undefined : { confirmed: true }),
          input: { value: "Ada" },
          editor: { cancelled: true },
        },
      },
    );
    try {
      const from = daemon.frames.length;
      await daemon.prompt("/ui-tour now");
      const notice = await daemon.next((frame) => frame["method"] === "notify", { after: from });
      expect(JSON.parse(String(notice["message"]))).toEqual({
        choice: "two",
        sure: true,
        name: "Ada",
        late: false,
        editorText: "",
        themes: 0,
        themed: false,
        expanded: false,
      });
      const shown = daemon.frames
        .filter((frame) => frame.type === "extension_ui_request")
        .map(({ type, id, ...fields }) => fields)
        // Whether titles are sent is up to the environment.
        .filter((frame) => frame["method"] !== "notify" && frame["method"] !== "setTitle");
      expect(shown).toEqual([
        { method: "setStatus", statusKey: "tour", statusText: "running" },
        { method: "setWidget", widgetKey: "tour", widgetLines: ["line 1", "line 2"], widgetPlacement: "belowEditor" },
        { method: "set_editor_text", text: "args: now" },
        { method: "select", title: "Pick", options: ["one", "two"] },
        { method: "confirm", title: "Sure?", message: "Really?" },
        { method: "input", title: "Name", placeholder: "placeholder" },
        { method: "editor", title: "Text", prefill: "prefill" },
        { method: "confirm", title: "Too late", message: "No answer", timeout: 20 },
        { method: "setWidget", widgetKey: "tour" },
        { method: "setStatus", statusKey: "tour" },
      ]);
      expect(errors(daemon)).toEqual([]);
    } finally {
      await daemon.stop();
    }
  });
});
