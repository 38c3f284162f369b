// Automatic compaction (agent-semantics §2.10, §12 items 30, 35, 36, 38, 39, 40; public-bugs 8C and 19).
import { describe, expect, it } from "vitest";
import type { ProviderRequest } from "../../../core/extension.ts";
import type { TestDaemon } from "../../../core/testing.ts";
import { calls, done, fail, Gate, says } from "../../support/scripted-provider.ts";
import { answers, isSummary, ofType, overflow, type Scene, startingScenes, textOf, tokensOf } from "./_start.ts";

let d: TestDaemon;
const start = startingScenes((made) => {
  d = made;
});
const starts = () => ofType(d, "auto_compaction_start");
const ends = () => ofType(d, "auto_compaction_end");
const notices = () => ofType(d, "notice").filter((frame) => frame["source"] === "compaction");
/** Long enough that a summary of it pays. */
const ONE = `one ${"y".repeat(400)}`;
const idle = { isStreaming: false, isCompacting: false };
const order = () => d.frames.map((frame) => frame.type).filter((type) => /^(auto_compaction|turn|agent)_/.test(type));
const lastUser = (request: ProviderRequest) => textOf(request.messages.findLast((message) => message.role === "user"));

describe("by threshold", () => {
  const config = "compaction:\n  keepRecentTokens: 40\n  thresholdTokens: 50000\n";

  it("compacts after the turn that went above it, once, and not again with the next prompt (item 35)", async () => {
    const { summaries } = await start({
      answer: (request, turn) => answers(`said ${turn} ${"x".repeat(100)}`, request.messages.length > 4 ? 60_000 : 100),
      config,
    });
    for (const text of ["one", "two"]) await d.prompt(text);
    expect(starts()).toEqual([]);
    await d.prompt("three");
    expect(starts()).toEqual([{ type: "auto_compaction_start", reason: "threshold", action: "context-full" }]);
    expect(ends()).toMatchObject([
      { action: "context-full", aborted: false, willRetry: false, result: { tokensBefore: 60_005 } },
    ]);
    expect(ends()[0]).not.toHaveProperty("errorMessage");
    await d.prompt("four");
    expect(starts()).toHaveLength(1);
    expect(summaries()).toHaveLength(1);
  });

  it("compacts between tool rounds, and the run goes on", async () => {
    const { provider } = await start({
      answer: (request) =>
        request.messages.at(-1)?.role === "user" && lastUser(request) === "go"
          ? [
              { type: "start" },
              ...calls({ id: "c", name: "big", args: { chars: 400 } }).slice(1, -2),
              { type: "usage", usage: { input: 60_000, output: 5 } },
              done("toolUse"),
            ]
          : answers("done", 100),
      config,
    });
    await d.prompt(`before ${"b".repeat(400)}`);
    await d.prompt("go");
    expect(order().slice(4)).toEqual([
      "agent_start",
      "turn_start",
      "turn_end",
      "auto_compaction_start",
      "auto_compaction_end",
      "turn_start",
      "turn_end",
      "agent_end",
    ]);
    expect(textOf(provider.requests.at(-1)?.messages[0])).toContain("## The user's latest request, word for word\ngo");
    expect(provider.refused).toEqual([]);
  });

  it("compacts before a prompt when the model was changed for a smaller one", async () => {
    const { summaries } = await start({
      answer: (_r, turn) => answers(`said ${turn} ${"x".repeat(100)}`, 60_000),
      model: { contextWindow: 200_000 },
    });
    await d.prompt("one");
    await d.prompt("two");
    const { conversations } = d.daemon;
    const model = conversations.attached.selection.model;
    if (model === undefined) throw new Error("no model");
    conversations.attached.select({ model: { ...model, id: "small", contextWindow: 64_000 } });
    const frames = await d.prompt("not summed up");
    const types = frames.map((frame) => frame.type);
    expect(types.indexOf("auto_compaction_end")).toBeLessThan(types.indexOf("agent_start"));
    expect(types).toContain("auto_compaction_end");
    expect(textOf(summaries()[0]?.messages[0])).not.toContain("not summed up");
  });

  it("marks the conversation, and messages queued meanwhile are delivered once (item 38)", async () => {
    const gate = new Gate();
    const asked = new Gate();
    await start({
      answer: (request) => answers(`said ${"x".repeat(200)}`, request.messages.length === 3 ? 60_000 : 100),
      summary: () => [() => asked.open(), gate, ...says("Sum")],
      config,
    });
    await d.prompt("one");
    d.send({ id: "p", type: "prompt", message: "two" });
    await asked.passed;
    expect(await d.ask("get_state")).toMatchObject({ isCompacting: true, isStreaming: true });
    await d.request("steer", { message: "steered" });
    await d.request("follow_up", { message: "followed" });
    gate.open();
    await d.next("agent_end", { after: d.frames.length });
    await d.daemon.conversations.attached.whenIdle();
    for (const text of ["steered", "followed"]) {
      const got = d.frames.filter((frame) => frame.type === "message_end" && textOf(frame["message"] as never) === text);
      expect(got).toHaveLength(1);
    }
    expect(await d.ask("get_state")).toMatchObject({ ...idle, queuedMessageCount: 0 });
  });

  it("ends with the run that is aborted", async () => {
    const asked = new Gate();
    const { provider } = await start({
      answer: () => answers(`said ${"x".repeat(200)}`, 60_000),
      summary: () => [() => asked.open(), new Gate(), ...says("Sum")],
      config,
    });
    d.send({ id: "p", type: "prompt", message: ONE });
    await asked.passed;
    await d.ask("abort");
    expect(ends()).toMatchObject([{ aborted: true, willRetry: false }]);
    expect(ends()[0]).not.toHaveProperty("errorMessage");
    expect(provider.aborted).toBe(1);
    expect(await d.ask("get_state")).toMatchObject(idle);
  });

  it("gives way to a compaction by hand", async () => {
    const asked = new Gate();
    let first = true;
    const { summaries } = await start({
      answer: () => answers(`said ${"x".repeat(600)}`, 60_000),
      summary: () => {
        if (!first) return says("Sum");
        first = false;
        return [() => asked.open(), new Gate(), ...says("never")];
      },
      config,
    });
    d.send({ id: "p", type: "prompt", message: ONE });
    await asked.passed;
    expect(await d.ask("compact")).toMatchObject({ summary: expect.stringContaining("Sum") });
    expect(summaries()).toHaveLength(2);
    expect(ends()).toMatchObject([{ aborted: true }]);
    expect(ofType(d, "agent_end")).toHaveLength(1);
    expect(await d.ask("get_state")).toMatchObject(idle);
  });

  it("tells of a summariser that fails, tries a bounded number of times and not again before the next prompt (case 8C, item 39)", async () => {
    const { summaries } = await start({
      answer: (request) =>
        lastUser(request) === "tool" && request.messages.at(-1)?.role === "user"
          ? calls({ id: `c${request.messages.length}`, name: "big", args: { chars: 10 } })
          : answers(`said ${"x".repeat(200)}`, 60_000),
      summary: () => [fail("500 boom")],
      config,
    });
    await d.prompt(ONE);
    expect(summaries()).toHaveLength(3);
    expect(ends()).toMatchObject([{ aborted: false, errorMessage: "Auto-compaction failed: 500 boom" }]);
    expect(await d.ask("get_state")).toMatchObject(idle);
    const before = await d.ask("get_messages");
    expect(JSON.stringify(before)).not.toContain("compactionSummary");
    await d.prompt("tool");
    // One attempt for the prompt; the turns after it change too little.
    expect(ends()).toHaveLength(2);
  });
});

describe("by idleness", () => {
  const config =
    "compaction:\n  keepRecentTokens: 40\n  idleEnabled: true\n  idleTimeoutSeconds: 0.05\n  idleThresholdTokens: 300\n";
  it("compacts a large context, and a prompt that comes meanwhile waits", async () => {
    const gate = new Gate();
    const asked = new Gate();
    await start({
      answer: () => answers(`said ${"x".repeat(2000)}`, 10_000),
      summary: () => [() => asked.open(), gate, ...says("Sum")],
      config,
    });
    await d.prompt(ONE);
    await asked.passed;
    expect(starts()).toMatchObject([{ reason: "idle" }]);
    expect(await d.ask("get_state")).toMatchObject({ isCompacting: true, isStreaming: false });
    const after = d.frames.length;
    await d.request("prompt", { message: "two" });
    gate.open();
    await d.next("agent_end", { after });
    const types = d.frames.slice(after).map((frame) => frame.type);
    expect(types.indexOf("auto_compaction_end")).toBeLessThan(types.indexOf("agent_start"));
  });

  it("is off by default", async () => {
    const { summaries } = await start({
      answer: () => answers(`said ${"x".repeat(2000)}`, 10_000),
      config: "compaction:\n  idleTimeoutSeconds: 0.01\n  idleThresholdTokens: 1\n",
    });
    await d.prompt("one");
    await new Promise((resolve) => setTimeout(resolve, 60));
    expect(summaries()).toHaveLength(0);
  });
});

describe("on overflow", () => {
  const window = 3000;
  const model = { contextWindow: window, maxTokens: 500 };
  // Refusals are the service's; usage stays honest.
  const honest = (request: ProviderRequest, text: string) => overflow(request, window) ?? answers(text, tokensOf(request));

  it("compacts, drops the failed answer and asks again, once (item 36)", async () => {
    let refused = false;
    const { provider, summaries } = await start({
      answer: (request) => {
        if (lastUser(request) !== "three" || refused) return answers(`said ${"x".repeat(300)}`, 100);
        refused = true;
        return [fail("prompt is too long", "overflow")];
      },
    });
    for (const text of ["one", "two", "three"]) await d.prompt(text);
    expect(starts()).toMatchObject([{ reason: "overflow" }]);
    expect(ends()).toMatchObject([{ willRetry: true, aborted: false }]);
    expect(summaries()).toHaveLength(1);
    expect(provider.refused).toEqual([]);
    const roles = ((await d.ask("get_messages"))["messages"] as { role: string; stopReason?: string }[]).map(
      (message) => message.stopReason ?? message.role,
    );
    expect(roles).toEqual(["compactionSummary", "user", "stop"]);
  });

  it("gives up with one clear error when it does not help", async () => {
    const { provider } = await start({
      answer: (request) =>
        lastUser(request) === "three" ? [fail("prompt is too long", "overflow")] : answers(`said ${"x".repeat(300)}`, 100),
    });
    for (const text of ["one", "two"]) await d.prompt(text);
    const before = provider.requests.length;
    await d.prompt("three");
    // Refused, summed up, refused again.
    expect(provider.requests.length - before).toBe(3);
    expect(notices()).toMatchObject([
      { level: "error", message: expect.stringMatching(/^Context overflow recovery failed: .*tokens.*window of 100,000/) },
    ]);
    expect(await d.ask("get_state")).toMatchObject(idle);
  });

  it("never takes a rate limit for an overflow (item 30)", async () => {
    await start({ answer: () => [fail("429 rate limit", "retryable")], config: "retry:\n  maxRetries: 1\n  baseDelayMs: 1\n" });
    await d.prompt("one");
    expect(starts()).toEqual([]);
    expect(ofType(d, "auto_retry_start")).toHaveLength(1);
  });

  describe("with a prompt that nearly fills the window (case 19)", () => {
    // 30,000 tokens of result over a window of 8,000 of which the system prompt takes 6,000, scaled down.
    const small = { contextWindow: 8000, maxTokens: 500 };
    const prompt = async (scene: Partial<Scene>) => {
      const made = await start({
        model: small,
        config: "compaction:\n  keepRecentTokens: 20000\n",
        answer: (request) =>
          overflow(request, 8000) ??
          (lastUser(request) === "go" && request.messages.at(-1)?.role === "user"
            ? [
                ...calls({ id: "c", name: "big", args: { chars: 120_000 } }).slice(0, -2),
                { type: "usage", usage: { input: tokensOf(request), output: 5 } },
                done("toolUse"),
              ]
            : answers("fine", tokensOf(request))),
        ...scene,
      });
      made.d.write("SYSTEM.md", "");
      const frames = await made.d.prompt("go");
      return { ...made, frames };
    };
    it("A: the huge result is summed up and the run goes on", async () => {
      const { provider, summaries } = await prompt({});
      expect(provider.requests.length).toBeLessThanOrEqual(4);
      expect(summaries()).toHaveLength(1);
      expect(provider.requests.every((request) => tokensOf(request) <= 8000)).toBe(true);
      const last = provider.requests.at(-1);
      expect(textOf(last?.messages[0])).toContain("## Results too large to keep\n- big: 120000 characters");
      expect(await d.ask("get_state")).toMatchObject(idle);
    });
    it("B: with auto-compaction off there is one request, one error", async () => {
      const { provider } = await prompt({ config: "compaction:\n  enabled: false\n" });
      expect(provider.requests).toHaveLength(2);
      expect(starts()).toEqual([]);
      expect(JSON.stringify(ofType(d, "agent_end"))).toContain("prompt is too long");
    });
    it("C: a summary that overflows counts as failed, and is not tried again", async () => {
      const { provider, summaries } = await prompt({ summary: () => [fail("prompt is too long", "overflow")] });
      expect(summaries()).toHaveLength(1);
      expect(provider.requests.length).toBeLessThanOrEqual(4);
      expect(ends()).toMatchObject([{ errorMessage: "Auto-compaction failed: prompt is too long" }]);
      expect(notices()).toMatchObject([{ level: "error" }]);
      expect(await d.ask("get_state")).toMatchObject({ ...idle, messageCount: 3 });
    });
    it("D: a summary longer than what it replaces counts as failed", async () => {
      const { provider, summaries } = await prompt({ summary: () => answers("z".repeat(130_000), 10) });
      expect(summaries()).toHaveLength(1);
      expect(provider.requests.length).toBeLessThanOrEqual(4);
      expect(ends()).toMatchObject([{ errorMessage: expect.stringContaining("is not smaller than what it would replace") }]);
    });
    it("E: without usage the estimate decides, and not on every turn", async () => {
      await prompt({
        answer: (request) => (request.messages.at(-1)?.role === "user" ? answers(`said ${"x".repeat(400)}`, 0, 0) : says("ok")),
        model: { contextWindow: 40_000 },
      });
      for (const text of ["1", "2", "3", "4"]) await d.prompt(text);
      expect(starts()).toEqual([]);
      expect((await d.ask("get_state"))["contextUsage"]).toMatchObject({ contextWindow: 40_000 });
    });
  });

  it("says with sizes when a prompt alone is larger than the window (item 40)", async () => {
    const { provider } = await start({ model, answer: (request) => honest(request, "ok") });
    await d.prompt("p".repeat(40_000));
    expect(provider.requests.filter(isSummary)).toHaveLength(0);
    expect(provider.requests).toHaveLength(1);
    expect(notices().at(-1)).toMatchObject({
      message: expect.stringMatching(/the newest message about 10,0\d\d, and scripted\/scripted has a window of 3,000/),
    });
    expect(await d.ask("get_state")).toMatchObject(idle);
  });

  it("goes on after an answer that was cut at the output limit, when there is new room", async () => {
    let cut = true;
    const { provider } = await start({
      config: "compaction:\n  keepRecentTokens: 40\n  thresholdTokens: 50000\n",
      answer: (request) => {
        if (lastUser(request) !== "long" || !cut) return answers(`said ${"x".repeat(200)}`, 100);
        cut = false;
        return [...answers(`half ${"x".repeat(200)}`, 60_000).slice(0, -1), done("length")];
      },
    });
    await d.prompt("one");
    await d.prompt("long");
    expect(starts()).toHaveLength(1);
    expect(lastUser(provider.requests.at(-1) as ProviderRequest)).toContain("cut off at the output limit");
    expect(provider.refused).toEqual([]);
  });
});
