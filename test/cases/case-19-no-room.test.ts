// Case 19: a context that compaction cannot make small enough costs a few requests and one clear error.
import { describe, expect, it } from "vitest";
import type { FakeReply, RecordedRequest } from "../support/fake-provider.ts";
import { ask, prompt, request, sessionFiles, sessionLines, sleep, useProcesses, wait } from "./_support.ts";

const use = useProcesses();
const WINDOW = 8000;
const isSummary = (request: RecordedRequest) => JSON.stringify(request.body).includes("You write hand-over notes");
const tokens = (request: RecordedRequest) => Math.ceil(JSON.stringify(request.body).length / 4);
const tooLong = (request: RecordedRequest): FakeReply => ({
  failure: {
    status: 400,
    type: "context_length_exceeded",
    message: `This model's maximum context length is ${WINDOW} tokens. However, your messages resulted in ${tokens(request)} tokens.`,
  },
});
/** About 6,000 tokens of the window. */
const SYSTEM = "Be brief. ".repeat(2400);
/** About 12,000 tokens of result: more than the window, as much as the tool gives. */
const huge = { name: "bash", arguments: { command: "for i in $(seq 1 4000); do echo line $i of the result; done" } };

async function start(
  options: {
    summary?: (request: RecordedRequest) => FakeReply;
    answer?: (request: RecordedRequest) => FakeReply;
    /** False: the service reports zeros. */
    usage?: boolean;
    /** What the daemon takes for the window. */
    window?: number;
    system?: string;
    compaction?: string;
  } = {},
) {
  const service = await use.service();
  let called = 0;
  const usage = (request: RecordedRequest) =>
    options.usage === false ? { input: 0, output: 0 } : { input: tokens(request), output: 10 };
  const answer =
    options.answer ??
    ((request) => {
      if (tokens(request) > WINDOW) return tooLong(request);
      return called++ > 0 ? { text: "fine", usage: usage(request) } : { toolCalls: [huge], usage: usage(request) };
    });
  const summary = options.summary ?? (() => ({ text: "## Goal\nSummed up" }));
  service.otherwise((request) => (isSummary(request) ? summary(request) : answer(request)));
  const daemon = use.start({
    ...service.daemon,
    args: ["--system-prompt", options.system ?? SYSTEM, "--tools", "bash"],
    files: {
      "config.yml": `compaction:\n${options.compaction ?? "  keepRecentTokens: 20000\n"}retry:\n  baseDelayMs: 1\n`,
      "models.yml": `providers:\n  openai:\n    modelOverrides:\n      gpt-5.1: { contextWindow: ${options.window ?? WINDOW}, maxTokens: 500 }\n`,
    },
  });
  await wait(daemon, "ready");
  return { service, daemon };
}
const idle = { isCompacting: false, isStreaming: false };
/** While nothing is going on another try would come every tenth of a second. */
const RESTLESS = "  idleEnabled: true\n  idleTimeoutSeconds: 0.1\n  idleThresholdTokens: 100\n";

describe("case 19", () => {
  it.each([
    ["A: honest numbers", true],
    ["E: no numbers", false],
  ])("%s: the huge result is summed up once, the run ends well, and the next prompt is one request", async (_what, usage) => {
    const { service, daemon } = await start({ usage });
    const frames = await prompt(daemon, "go");
    expect(service.requests.map(isSummary)).toEqual([false, true, false]);
    expect(frames.filter((frame) => frame.type === "auto_compaction_start")).toHaveLength(1);
    expect(await ask(daemon, "get_state")).toMatchObject(idle);
    const last = sessionLines(sessionFiles(daemon.home)[0] ?? "").findLast((line) => line["type"] === "message");
    expect(last?.["message"]).toMatchObject({ role: "assistant", stopReason: "stop" });
    await prompt(daemon, "and on");
    expect(service.requests.map(isSummary)).toEqual([false, true, false, false]);
  });

  it("A: an overflow that a compaction does not heal is one compaction and one error with the sizes", async () => {
    let called = 0;
    const { service, daemon } = await start({
      // From the third request on the service has less room than the daemon knows of, and never enough again.
      window: 100_000,
      compaction: "  keepRecentTokens: 20000\n",
      answer: (request) => {
        if (++called > 2) return tooLong(request);
        return called === 1 ? { toolCalls: [huge] } : { text: "fine" };
      },
    });
    await prompt(daemon, "go");
    const frames = await prompt(daemon, "and on");
    await sleep(500);
    expect(service.requests.map(isSummary)).toEqual([false, false, false, true, false]);
    expect(frames.filter((frame) => frame.type === "auto_compaction_start")).toMatchObject([{ reason: "overflow" }]);
    const errors = frames.filter((frame) => frame.type === "notice" && frame["level"] === "error");
    expect(errors).toHaveLength(1);
    expect(String(errors[0]?.["message"])).toMatch(/take about 6,\d\d\d tokens.*window of 100,000/);
    expect(frames.filter((frame) => frame.type === "agent_end")).toHaveLength(1);
    expect(await ask(daemon, "get_state")).toMatchObject(idle);
  });

  it("A: a prompt that no compaction can make fit costs nothing but one clear error with the sizes", async () => {
    const { service, daemon } = await start();
    const frames = await prompt(daemon, `Look at this: ${"word ".repeat(12_000)}`);
    await sleep(1500);
    expect(service.requests.length).toBeLessThanOrEqual(2);
    const errors = frames.filter((frame) => frame.type === "notice" && frame["level"] === "error");
    expect(errors).toHaveLength(1);
    expect(String(errors[0]?.["message"])).toMatch(/15,0\d\d.*window of 8,000/);
    expect(await ask(daemon, "get_state")).toMatchObject(idle);
    await ask(daemon, "abort");
    expect(await request(daemon, "new_session")).toMatchObject({ success: true });
  });

  it("B: with auto-compaction off there is no compaction and no second sending", async () => {
    const { service, daemon } = await start();
    await ask(daemon, "set_auto_compaction", { enabled: false });
    const frames = await prompt(daemon, "go");
    expect(service.requests).toHaveLength(2);
    expect(frames.filter((frame) => /compaction/.test(frame.type))).toEqual([]);
    expect(JSON.stringify(frames.at(-1))).toContain("maximum context length");
    const failed = frames.filter(
      (frame) => frame.type === "message_end" && JSON.stringify(frame).includes('"stopReason":"error"'),
    );
    expect(failed).toHaveLength(1);
    expect(await ask(daemon, "get_state")).toMatchObject(idle);
  });

  const failures: readonly [string, (request: RecordedRequest) => FakeReply][] = [
    ["C: a summary request that overflows", tooLong],
    ["D: a summary longer than what it replaces", () => ({ text: "z".repeat(200_000) })],
  ];
  it.each(failures)("%s counts as failed: the history is kept, and nothing is tried again", async (_what, summary) => {
    const { service, daemon } = await start({ summary, compaction: RESTLESS });
    const frames = await prompt(daemon, "go");
    await sleep(800);
    expect(service.requests.map(isSummary)).toEqual([false, true, false]);
    expect(frames.filter((frame) => frame.type === "notice" && frame["level"] === "error")).toHaveLength(1);
    expect(await ask(daemon, "get_state")).toMatchObject(idle);
    const types = sessionLines(sessionFiles(daemon.home)[0] ?? "").map((line) => line["type"]);
    expect(types).not.toContain("compaction");
  });

  it("E: without numbers from the service the estimate decides when, and not on every turn", async () => {
    const { service, daemon } = await start({
      system: "Be brief.",
      compaction: "  keepRecentTokens: 1000\n",
      answer: () => ({ text: `said ${"x".repeat(4000)}`, usage: { input: 0, output: 0 } }),
    });
    for (const text of ["1", "2", "3", "4"]) await prompt(daemon, text);
    expect(service.requests.map(isSummary)).toEqual([false, false, false, false]);
    for (const text of ["5", "6", "7", "8", "9"]) await prompt(daemon, text);
    expect(service.requests.some(isSummary)).toBe(true);
    expect(service.requests.length).toBeLessThanOrEqual(9 + 4);
    expect(daemon.frames.filter((frame) => frame.type === "auto_compaction_start")).toHaveLength(1);
    expect(service.requests.every((request) => tokens(request) <= WINDOW)).toBe(true);
  });

  it("abort works while the summary is written, in the turn or before the prompt, and while the service is asked", async () => {
    const never = { text: "never", hold: new Promise(() => {}) };
    let asked = 0;
    const { service, daemon } = await start({
      summary: () => never,
      answer: () => (asked++ === 0 ? { toolCalls: [huge] } : never),
    });
    const abortAt = async (count: number, message: string) => {
      const began = daemon.frames.length;
      await ask(daemon, "prompt", { message });
      const held = await service.request(count);
      await ask(daemon, "abort");
      expect(await held.closed).toBe(true);
      await wait(daemon, "agent_end", began);
      expect(await ask(daemon, "get_state")).toMatchObject(idle);
      return held;
    };
    expect(isSummary(await abortAt(2, "in the turn"))).toBe(true);
    expect(isSummary(await abortAt(3, "before the prompt"))).toBe(true);
    await ask(daemon, "set_auto_compaction", { enabled: false });
    expect(isSummary(await abortAt(4, "while asked"))).toBe(false);
    expect(service.requests).toHaveLength(4);
  });
});
