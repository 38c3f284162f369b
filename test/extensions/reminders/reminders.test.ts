// todo_reminder (agent-semantics §5): at most three per prompt, only when the model stops by itself with work left to do.
import { afterEach, describe, expect, it } from "vitest";
import { Jobs } from "../../../core/extension.ts";
import { startDaemon, type TestDaemon } from "../../../core/testing.ts";
import type { Frame } from "../../../protocol/frame.ts";
import { calls, fail, type Script, says, scriptedModel, scriptedProvider } from "../../support/scripted-provider.ts";

let daemon: TestDaemon | undefined;
afterEach(async () => {
  await daemon?.stop();
  daemon = undefined;
});

async function start(script: Script[], config = "") {
  const provider = scriptedProvider(...script);
  daemon = await startDaemon({ extensions: { scripted: [[provider.definition]] }, files: { "config.yml": config } });
  daemon.daemon.conversations.attached.select({ model: scriptedModel });
  const tasks = [
    { content: "Write it", status: "in_progress" },
    { content: "Test it", status: "pending" },
    { content: "Plan it", status: "completed" },
  ];
  await daemon.ask("set_todos", { phases: [{ name: "Work", tasks }] });
  return { d: daemon, provider };
}
const reminders = (frames: readonly Frame[]) => frames.filter(({ type }) => type === "todo_reminder");
let ids = 0;
const work: Script = () => calls({ id: `w${ids++}`, name: "ls" });

describe("todo_reminder", () => {
  it("comes at most three times per prompt, each after some tool ran, and continues the run before agent_end", async () => {
    const { d, provider } = await start([says("Stopping"), work, says("Stopping"), work, says("Stopping"), work, says("Really")]);
    const frames = await d.prompt("Go");
    expect(reminders(frames).map(({ attempt, maxAttempts }) => [attempt, maxAttempts])).toEqual([
      [1, 3],
      [2, 3],
      [3, 3],
    ]);
    expect(reminders(frames)[0]?.["todos"]).toEqual([
      { content: "Write it", status: "in_progress" },
      { content: "Test it", status: "pending" },
    ]);
    expect(frames.filter(({ type }) => type === "agent_end")).toHaveLength(1);
    expect(provider.requests).toHaveLength(7);
    provider.push(says("Stopping again"), says("No tool ran"));
    expect(reminders(await d.prompt("Next"))).toHaveLength(1);
  });

  it.each([
    ["after a question to the user", [says("Which of the two do you want?")], ""],
    ["after an error", [[fail("Broken", "fatal")]], ""],
    ["in plan mode", [says("Stopping")], "tools:\n  approvalMode: plan\n"],
    ["when todo.reminders is off", [says("Stopping")], "todo:\n  reminders: false\n"],
    ["when todo.reminders.max is 0", [says("Stopping")], "todo.reminders.max: 0\n"],
  ] satisfies [string, Script[], string][])("does not come %s", async (_when, script, config) => {
    const { d } = await start(script, config);
    expect(reminders(await d.prompt("Go"))).toEqual([]);
  });

  it("does not come while a background job will wake the model anyway", async () => {
    const { d } = await start([says("Waiting for the build")]);
    const { conversations, kernel } = d.daemon;
    kernel.services.use(Jobs).start({
      conversation: conversations.attached,
      type: "bash",
      label: "build",
      run: (signal) => new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
    });
    expect(reminders(await d.prompt("Go"))).toEqual([]);
  });
});

it("finished todos stay in the plan: the reserved frame todo_auto_clear is known and never sent", async () => {
  const daemon = await startDaemon();
  try {
    await daemon.ask("set_todos", { phases: [{ name: "P", tasks: [{ content: "a", status: "completed" }] }] });
    await daemon.prompt("hello");
    await daemon.prompt("again");
    const state = await daemon.ask("get_state");
    expect(state["todoPhases"]).toEqual([{ name: "P", tasks: [{ content: "a", status: "completed" }] }]);
    expect(daemon.daemon.kernel.registry.get("event", "todo_auto_clear")).toBeDefined();
    expect(daemon.frames.some((frame) => frame.type === "todo_auto_clear")).toBe(false);
  } finally {
    await daemon.stop();
  }
});

describe("a plan that is forgotten over the work", () => {
  const change: Script = () => calls({ id: `w${ids++}`, name: "write", args: { path: "notes.txt", content: String(ids) } });
  const nudges = (frames: readonly Frame[]) =>
    frames.flatMap((frame, at) => {
      const message = frame.type === "message_end" ? (frame["message"] as { customType?: string; display?: boolean }) : undefined;
      if (message?.customType !== "todo-nudge") return [];
      expect(message.display).toBe(false);
      // Results of calls before it.
      return [frames.slice(0, at).filter(({ type }) => type === "tool_execution_end").length];
    });
  const times = (count: number, script: Script) => Array.from({ length: count }, () => script);

  it("is pointed to after 12 calls that changed something, twice per prompt, in a message that the model sees", async () => {
    const { d, provider } = await start([...times(40, change), says("All right?")]);
    expect(nudges(await d.prompt("Go"))).toEqual([12, 24]);
    expect(JSON.stringify(provider.requests[12]?.messages.at(-1))).toContain("12 times since you last touched your plan");
    expect(provider.refused).toEqual([]);
    expect(await d.ask("get_state")).toMatchObject({ queuedMessageCount: 0 });
    provider.push(...times(13, change), says("All right?"));
    expect(nudges(await d.prompt("Again"))).toEqual([12]);
  });

  it("is not, while it is kept up to date, nothing is changed, it is done, or todo.reminders is off", async () => {
    const update: Script = () => calls({ id: `w${ids++}`, name: "todo", args: { op: "start", task: "Test it" } });
    const { d, provider } = await start([
      ...times(11, change),
      update,
      ...times(11, change),
      ...times(20, work),
      says("All right?"),
    ]);
    expect(nudges(await d.prompt("Go"))).toEqual([]);
    await d.ask("set_todos", { phases: [] });
    provider.push(...times(13, change), says("All right?"));
    expect(nudges(await d.prompt("Again"))).toEqual([]);
    await d.stop();
    const off = await start([...times(13, change), says("All right?")], "todo:\n  reminders: false\n");
    expect(nudges(await off.d.prompt("Go"))).toEqual([]);
  });
});
