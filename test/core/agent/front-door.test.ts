// The runtime as a host sees it: a whole daemon over arrays, with a scripted model service.
import { readFile } from "node:fs/promises";
import { afterEach, describe, expect, it } from "vitest";
import { defineTool, z } from "../../../core/extension.ts";
import { startDaemon, type TestDaemon } from "../../../core/testing.ts";
import type { AgentMessage } from "../../../protocol/message.ts";
import {
  calls,
  done,
  fail,
  Gate,
  type ScriptedProvider,
  says,
  scriptedModel,
  scriptedProvider,
} from "../../support/scripted-provider.ts";
import { textOf } from "./_harness.ts";

let daemon: TestDaemon | undefined;
afterEach(async () => {
  await daemon?.stop();
  daemon = undefined;
});

const echo = defineTool({
  name: "echo",
  description: "Gives its text back",
  params: z.object({ text: z.string() }),
  run: (_ctx, { text }) => text,
});

async function start(provider: ScriptedProvider, ...more: unknown[]): Promise<TestDaemon> {
  daemon = await startDaemon({ extensions: { scripted: [[provider.definition, echo, ...more]] } });
  daemon.daemon.conversations.attached.select({ model: scriptedModel });
  return daemon;
}

const roles = (frames: readonly { type: string; message?: unknown }[]) =>
  frames.filter((frame) => frame.type === "message_end").map((frame) => (frame.message as AgentMessage).role);

describe("prompt", () => {
  it("is acknowledged first, runs the tool and ends once", async () => {
    const d = await start(scriptedProvider(calls({ id: "c", name: "echo", args: { text: "hi" } }), says("Done")));
    const frames = await d.prompt("Go");
    expect(frames.findIndex((frame) => frame.type === "response")).toBeLessThan(
      frames.findIndex((frame) => frame.type === "agent_start"),
    );
    expect(roles(frames)).toEqual(["user", "assistant", "toolResult", "assistant"]);
    expect(frames.filter((frame) => frame.type === "agent_end")).toHaveLength(1);
    const state = await d.ask("get_state");
    expect(state).toMatchObject({ isStreaming: false, messageCount: 4, queuedMessageCount: 0 });
    const { conversations } = d.daemon;
    expect(await readFile(conversations.attached.log.file ?? "", "utf8")).toContain('"toolCallId":"c"');
  });

  it("fails late with the same id when busy, and the first is not disturbed (item 6)", async () => {
    const gate = new Gate();
    const d = await start(scriptedProvider([gate, ...says("one")]));
    d.send({ id: "p1", type: "prompt", message: "one" });
    d.send({ id: "p2", type: "prompt", message: "two" });
    const late = await d.next((frame) => frame.type === "response" && frame["id"] === "p2" && frame["success"] === false);
    expect(late["error"]).toMatch(/^Agent is already processing\./);
    expect(d.frames.filter((frame) => frame["id"] === "p2").map((frame) => frame["success"])).toEqual([true, false]);
    gate.open();
    const end = await d.next("agent_end");
    expect((end["messages"] as AgentMessage[]).map(textOf)).toEqual(["one", "one"]);
  });

  it("aborts: the queue stays, leftover steering starts a run after the response (item 21)", async () => {
    const never = new Gate();
    const d = await start(
      scriptedProvider(
        [{ type: "text_start", index: 0 }, { type: "text_delta", index: 0, delta: "x" }, never, done()],
        says("two"),
      ),
    );
    d.send({ id: "p1", type: "prompt", message: "one" });
    await d.next("message_update");
    await d.request("steer", { message: "later" });
    expect(await d.ask("get_state")).toMatchObject({ isStreaming: true, queuedMessageCount: 1 });
    const response = await d.request("abort");
    expect(response["success"]).toBe(true);
    await d.next((frame) => frame.type === "message_end" && textOf(frame["message"] as AgentMessage) === "two");
    expect(d.frames.filter((frame) => frame.type === "agent_start")).toHaveLength(2);
  });

  it("can be aborted while the key is still looked up, and keeps its message", async () => {
    const models =
      "providers: {slow: {baseUrl: http://127.0.0.1:1/v1, api: openai-completions, apiKey: '!sleep 60', models: [{id: m}]}}";
    daemon = await startDaemon({ files: { "models.yml": models }, options: { model: "slow/m" } });
    await daemon.ask("prompt", { message: "one" });
    await daemon.ask("abort");
    expect(await daemon.ask("get_state")).toMatchObject({ isStreaming: false, messageCount: 2 });
    const end = daemon.frames.find((frame) => frame.type === "agent_end");
    expect(end).toMatchObject({ messages: [{ role: "user" }, { role: "assistant", stopReason: "aborted" }] });
  });

  it("sends no agent_end of a run that new_session interrupts", async () => {
    const never = new Gate();
    const d = await start(
      scriptedProvider(
        [{ type: "text_start", index: 0 }, { type: "text_delta", index: 0, delta: "so" }, never, done()],
        says("two"),
      ),
    );
    d.send({ id: "p1", type: "prompt", message: "one" });
    await d.next("message_update");
    expect(await d.ask("new_session")).toMatchObject({ cancelled: false });
    expect(d.frames.some((frame) => frame.type === "agent_end")).toBe(false);
    expect(await d.ask("get_state")).toMatchObject({ messageCount: 0, isStreaming: false });
    await d.prompt("two");
  });

  it("ends with an error a host can read, and the next prompt works (public-bugs 20, 21)", async () => {
    const provider = scriptedProvider(
      [...calls({ id: "c", name: "echo", args: { text: "x" } }).slice(0, -1), fail("broken", "fatal")],
      says("fine"),
    );
    const d = await start(provider);
    const frames = await d.prompt("one");
    const answer = frames.filter((frame) => frame.type === "message_end").map((frame) => frame["message"] as AgentMessage)[1];
    expect(answer).toMatchObject({ stopReason: "error", errorMessage: "broken" });
    await d.prompt("two");
    expect(provider.refused).toEqual([]);
  });
});
