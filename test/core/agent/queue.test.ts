import { describe, expect, it } from "vitest";
import { defineHook, defineTool, input, runEnded, z } from "../../../core/extension.ts";
import type { AgentMessage } from "../../../protocol/message.ts";
import { calls, done, Gate, says, scriptedProvider } from "../../support/scripted-provider.ts";
import { harness, textOf } from "./_harness.ts";

const params = z.object({});
const users = (messages: readonly AgentMessage[]) => messages.filter((message) => message.role === "user").map(textOf);

/** A tool that runs `body` and ends. */
const tool = (name: string, body: () => unknown, more: object = {}) =>
  defineTool({
    name,
    description: name,
    params,
    run: async () => {
      await body();
      return `${name} ran`;
    },
    ...more,
  });

describe("steering and follow-ups", () => {
  it("delivers steering after the tools, one a turn, and follow-ups when the run would stop", async () => {
    const provider = scriptedProvider(calls({ id: "a", name: "t" }), says("1"), says("2"), says("3"));
    const h = harness({
      provider,
      definitions: [
        tool("t", () => {
          void h.conversation.submit("follow", { delivery: "followUp" });
          void h.conversation.submit("steer 1", { delivery: "steer" });
          void h.conversation.submit("steer 2", { delivery: "steer" });
          expect(h.conversation.queue.count).toBe(3);
        }),
      ],
    });
    await h.conversation.submit("Go").settled;
    expect(users(h.conversation.messages)).toEqual(["Go", "steer 1", "steer 2", "follow"]);
    expect(provider.requests.map((request) => users(request.messages).at(-1))).toEqual(["Go", "steer 1", "steer 2", "follow"]);
    expect(h.conversation.messages.find((message) => textOf(message) === "steer 1")).toMatchObject({ steering: true });
    expect(h.conversation.queue.count).toBe(0);
  });

  it("empties a queue in mode all", async () => {
    const provider = scriptedProvider(calls({ id: "a", name: "t" }), says("1"));
    const h = harness({
      provider,
      definitions: [tool("t", () => ["x", "y"].map((text) => h.conversation.submit(text, { delivery: "steer" })))],
    });
    h.conversation.queue.steeringMode = "all";
    await h.conversation.submit("Go").settled;
    expect(provider.requests).toHaveLength(2);
    expect(users(h.conversation.messages)).toEqual(["Go", "x", "y"]);
  });

  it("skips only calls that have not started (items 20 and 22, public-bugs 21.4)", async () => {
    const provider = scriptedProvider(
      calls({ id: "a", name: "first" }, { id: "b", name: "later" }, { id: "c", name: "later" }),
      says("End"),
    );
    const h = harness({
      provider,
      definitions: [
        tool("first", () => h.conversation.submit("wait", { delivery: "steer" }), { concurrency: "exclusive" }),
        tool("later", () => {}),
      ],
    });
    await h.conversation.submit("Go").settled;
    const results = h.ends("toolResult").map(textOf);
    expect(results[0]).toBe("first ran");
    expect(results[1]).toMatch(/^Skipped due to queued user message\./);
    expect(results[2]).toMatch(/^Skipped due to queued user message\./);
    expect(users(provider.requests[1]?.messages ?? [])).toEqual(["Go", "wait"]);
    expect(provider.refused).toEqual([]);
  });

  it("runs the whole batch in interrupt mode wait", async () => {
    const provider = scriptedProvider(calls({ id: "a", name: "first" }, { id: "b", name: "later" }), says("End"));
    const h = harness({
      provider,
      definitions: [
        tool("first", () => h.conversation.submit("wait", { delivery: "steer" }), { concurrency: "exclusive" }),
        tool("later", () => {}),
      ],
    });
    h.conversation.queue.interruptMode = "wait";
    await h.conversation.submit("Go").settled;
    expect(h.ends("toolResult").map(textOf)).toEqual(["first ran", "later ran"]);
  });

  it("aborts a running pure wait when steering comes, and no other running tool", async () => {
    const provider = scriptedProvider(calls({ id: "a", name: "sleep" }, { id: "b", name: "work" }), says("End"));
    const workStarted = new Gate();
    const mayEnd = new Gate();
    const h = harness({
      provider,
      definitions: [
        defineTool({
          name: "sleep",
          description: "waits",
          params,
          interruptible: true,
          run: (ctx) => new Promise((resolve) => ctx.signal.addEventListener("abort", () => resolve("woken"))),
        }),
        tool("work", async () => {
          workStarted.open();
          await mayEnd.passed;
        }),
      ],
    });
    const work = h.conversation.submit("Go");
    await workStarted.passed;
    void h.conversation.submit("hey", { delivery: "steer" });
    await h.frame((frame) => frame.type === "tool_execution_end" && frame["toolName"] === "sleep");
    mayEnd.open();
    await work.settled;
    expect(h.ends("toolResult").map(textOf)).toEqual(["woken", "work ran"]);
  });

  it("starts a run for a message that comes while idle", async () => {
    const h = harness({ provider: scriptedProvider(says("1"), says("2")) });
    await h.conversation.submit("steered", { delivery: "steer" }).settled;
    await h.conversation.submit("followed", { delivery: "followUp" }).settled;
    expect(users(h.conversation.messages)).toEqual(["steered", "followed"]);
  });

  it("keeps queued input in order while a handler looks at it, and lets one be handled", async () => {
    const gate = new Gate();
    const provider = scriptedProvider([gate, ...says("1")], says("2"), says("3"));
    const h = harness({
      provider,
      definitions: [
        defineHook(input, async (value) => {
          if (value.text === "slow") await new Promise((resolve) => setImmediate(resolve));
          if (value.text === "mine") return { ...value, handled: true };
          return { ...value, text: value.text.toUpperCase() };
        }),
      ],
    });
    const work = h.conversation.submit("go");
    await work;
    const queued = ["slow", "quick", "mine"].map((text) => h.conversation.submit(text, { delivery: "steer" }));
    await Promise.all(queued);
    gate.open();
    await work.settled;
    expect(users(h.conversation.messages)).toEqual(["GO", "SLOW", "QUICK"]);
    expect((await h.conversation.submit("mine").settled).status).toBe("handled");
    expect(h.frames.filter((frame) => frame.type === "agent_start")).toHaveLength(1);
  });

  it("goes on with what runEnded handlers queue", async () => {
    let reminded = 0;
    const provider = scriptedProvider(says("1"), says("2"));
    const h = harness({
      provider,
      definitions: [
        defineHook(runEnded, async ({ conversation }) => {
          if (reminded++ > 0) return;
          await conversation.submitCustom({ role: "developer", content: "remember", timestamp: 1 }, { triggerTurn: true });
        }),
      ],
    });
    await h.conversation.submit("Go").settled;
    expect(provider.requests).toHaveLength(2);
    expect(h.outline().filter((type) => type === "agent_start" || type === "agent_end")).toEqual(["agent_start", "agent_end"]);
  });
});

describe("abort and the queues (items 21 and 23, protocol-facts §3.5)", () => {
  it("keeps both queues; leftover steering starts a run, follow-ups wait for the user", async () => {
    const never = new Gate();
    const provider = scriptedProvider(
      [{ type: "text_start", index: 0 }, { type: "text_delta", index: 0, delta: "par" }, never, done()],
      says("2"),
      says("3"),
      says("4"),
    );
    const h = harness({ provider });
    const work = h.conversation.submit("Go");
    await h.frame((frame) => frame.type === "message_update");
    void h.conversation.submit("steer", { delivery: "steer" });
    void h.conversation.submit("follow", { delivery: "followUp" });
    await h.conversation.abort();
    expect(h.conversation.queue.count).toBe(2);
    expect((await work.settled).status).toBe("aborted");
    expect(h.conversation.lastAssistant()).toMatchObject({ stopReason: "aborted", errorMessage: "Interrupted by user" });
    await h.frame((frame) => frame.type === "message_end" && textOf(frame["message"] as AgentMessage) === "2");
    await h.conversation.whenIdle();
    expect(h.conversation.queue.followUp.map(textOf)).toEqual(["follow"]);
    await h.conversation.submit("again").settled;
    expect(users(h.conversation.messages)).toEqual(["Go", "steer", "again", "follow"]);
    expect(provider.refused).toEqual([]);
  });

  it("does not resume when told not to: abort_and_prompt takes the steering along", async () => {
    const never = new Gate();
    const provider = scriptedProvider(
      [{ type: "text_start", index: 0 }, { type: "text_delta", index: 0, delta: "so" }, never, done()],
      says("2"),
      says("3"),
    );
    const h = harness({ provider });
    void h.conversation.submit("Go");
    await h.frame((frame) => frame.type === "message_update");
    void h.conversation.submit("steer", { delivery: "steer" });
    await h.conversation.abort(undefined, { resume: false });
    await h.conversation.submit("new").settled;
    expect(users(h.conversation.messages)).toEqual(["Go", "new", "steer"]);
  });
});
