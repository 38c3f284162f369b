// items 17, 18, 23, 26, 28, 31, 33 of agent-semantics §12, on the built daemon.
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { ask, prompt, sessionFiles, sessionLines, sessionText, useProcesses, userMessage, wait } from "../cases/_support.ts";

const use = useProcesses();
type Message = Record<string, unknown>;
const messages = (home: string) =>
  sessionLines(sessionFiles(home)[0] ?? "").flatMap((line) => (line["type"] === "message" ? [line["message"] as Message] : []));

async function start(config = "retry:\n  baseDelayMs: 1\n", files: Record<string, string> = {}) {
  const service = await use.service();
  const daemon = use.start({ ...service.daemon, files: { "config.yml": config, ...files } });
  await wait(daemon, (frame) => frame.type === "available_commands_update");
  return { service, daemon };
}

describe("the agent", () => {
  it("item 17: dumpTools holds plain JSON Schema", async () => {
    const { daemon } = await start();
    const { dumpTools } = (await ask(daemon, "get_state")) as { dumpTools: { name: string; parameters: Message }[] };
    expect(dumpTools.length).toBeGreaterThan(5);
    for (const { name, parameters } of dumpTools) {
      expect(parameters["type"], name).toBe("object");
      expect(JSON.stringify(parameters), name).not.toMatch(/"(_zod|def|~standard|_def)"/);
    }
  });

  it("item 18: a session whose messages have no usage gives all events and stats", async () => {
    const { service, daemon } = await start();
    const bare = {
      role: "assistant",
      content: [{ type: "text", text: "hello" }],
      api: "x",
      provider: "x",
      model: "x",
      stopReason: "stop",
      timestamp: 2,
    };
    const file = daemon.write("old.jsonl", sessionText(daemon.cwd, [userMessage("hi"), bare]));
    await ask(daemon, "switch_session", { sessionPath: file });
    service.script({ text: "fine" });
    const frames = await prompt(daemon, "next");
    expect(frames.map((frame) => frame.type)).toEqual(
      expect.arrayContaining(["agent_start", "turn_start", "turn_end", "agent_end"]),
    );
    expect(await ask(daemon, "get_session_stats")).toMatchObject({ userMessages: 2, assistantMessages: 2 });
    expect((await ask(daemon, "get_messages"))["messages"]).toHaveLength(4);
  });

  it("item 23: after an abort no request starts, even when a hook behind the tool is still at work", async () => {
    const { service, daemon } = await start(undefined, {
      "extensions/slow.ts": `import { defineHook, toolFinished } from "mortise/extension";
export default defineHook(toolFinished, (finished, ctx) => {
  ctx.send({ kind: "frame", name: "notice" } as never, { level: "info", message: "in the hook", source: "slow" } as never);
  return new Promise((resolve) => setTimeout(resolve, 400, undefined));
});
`,
    });
    service.otherwise({ text: "never" });
    service.script({ toolCalls: [{ name: "ls", arguments: {} }] });
    const began = daemon.frames.length;
    await ask(daemon, "prompt", { message: "go" });
    await wait(daemon, "tool_execution_start", began);
    await ask(daemon, "abort");
    await wait(daemon, "agent_end", began);
    expect(service.requests).toHaveLength(1);
    await prompt(daemon, "again");
    expect(service.requests).toHaveLength(2);
    expect(service.requests.filter((request) => request.refusal !== undefined)).toEqual([]);
  });

  it("item 26: calls of an answer that says stop are run", async () => {
    const { service, daemon } = await start();
    service.script({ toolCalls: [{ name: "ls", arguments: {} }], stop: "stop" }, { text: "done" });
    const frames = await prompt(daemon, "go");
    expect(frames.filter((frame) => frame.type === "tool_execution_end")).toHaveLength(1);
    expect((await ask(daemon, "get_last_assistant_text"))["text"]).toBe("done");
  });

  it("item 28: results stand in the order of the calls, and an exclusive tool overlaps none", async () => {
    const { service, daemon } = await start(undefined, {
      "extensions/alone.ts": `import { appendFileSync } from "node:fs";
import { defineTool, z } from "mortise/extension";
const note = (ctx: { cwd: string }, text: string) => appendFileSync(ctx.cwd + "/order", text);
export default (["shared", "exclusive"] as const).map((concurrency) => defineTool({
  name: concurrency + "_one", description: "Takes its time", concurrency, params: z.object({ ms: z.number() }),
  run: async (ctx, { ms }) => {
    note(ctx, concurrency === "shared" ? "(" : "[");
    await new Promise((resolve) => setTimeout(resolve, ms));
    note(ctx, concurrency === "shared" ? ")" : "]");
    return "after " + ms;
  },
}));
`,
    });
    const call = (name: string, ms: number) => ({ name, arguments: { ms }, id: `c${ms}` });
    service.script(
      {
        toolCalls: [
          call("shared_one", 120),
          call("shared_one", 10),
          call("exclusive_one", 30),
          call("shared_one", 20),
          call("exclusive_one", 11),
        ],
      },
      { text: "done" },
    );
    await prompt(daemon, "go");
    expect(readFileSync(`${daemon.cwd}/order`, "utf8")).toMatch(/^\(\(\)\)\[\]\(\)\[\]$/);
    const results = messages(daemon.home).filter((message) => message["role"] === "toolResult");
    expect(results.map((message) => message["toolCallId"])).toEqual(["c120", "c10", "c30", "c20", "c11"]);
    expect(service.requests.filter((request) => request.refusal !== undefined)).toEqual([]);
  });

  it("item 31: a wait above the cap that the server asks for fails at once, with both numbers", async () => {
    const { service, daemon } = await start("retry:\n  baseDelayMs: 1\n  maxDelayMs: 5000\n");
    service.script({ failure: { status: 429, message: "Slow down", headers: { "retry-after": "120" } } });
    const began = performance.now();
    const frames = await prompt(daemon, "go");
    expect(performance.now() - began).toBeLessThan(5000);
    expect(service.requests).toHaveLength(1);
    expect(frames.filter((frame) => frame.type === "auto_retry_start")).toEqual([]);
    expect(JSON.stringify(frames)).toMatch(/120000ms wait, exceeds retry\.maxDelayMs \(5000ms\)/);
  });

  it("item 33: a chain ends exactly once, also when the continuation fails for another reason", async () => {
    const { service, daemon } = await start();
    service.script({ failure: { status: 529, message: "Overloaded" } }, { failure: { status: 401, message: "Wrong key" } });
    const frames = await prompt(daemon, "go");
    expect(frames.filter((frame) => frame.type === "auto_retry_start")).toHaveLength(1);
    expect(daemon.frames.filter((frame) => frame.type === "auto_retry_end")).toMatchObject([{ success: false }]);
    expect(await ask(daemon, "get_state")).toMatchObject({ isStreaming: false });
    service.script({ text: "fine" });
    await prompt(daemon, "again");
    expect((await ask(daemon, "get_last_assistant_text"))["text"]).toBe("fine");
  });
});
