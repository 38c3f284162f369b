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
/** About 12,000 tokens of result: more than the window, as much as the tool gives. */
const huge = { name: "bash", arguments: { command: "for i in $(seq 1 4000); do echo line $i of the result; done" } };

async function start(
  options: { summary?: (request: RecordedRequest) => FakeReply; answer?: (request: RecordedRequest) => FakeReply } = {},
) {
  const service = await use.service();
  let called = 0;
  const answer =
    options.answer ??
    ((request) => {
      if (tokens(request) > WINDOW) return tooLong(request);
      return called++ > 0
        ? { text: "fine", usage: { input: tokens(request) } }
        : { toolCalls: [huge], usage: { input: tokens(request) } };
    });
  const summary = options.summary ?? (() => ({ text: "## Goal\nSummed up" }));
  service.otherwise((request) => (isSummary(request) ? summary(request) : answer(request)));
  const daemon = use.start({
    ...service.daemon,
    args: ["--system-prompt", "Be brief. ".repeat(200), "--tools", "bash"],
    files: {
      "config.yml": "compaction:\n  keepRecentTokens: 20000\nretry:\n  baseDelayMs: 1\n",
      "models.yml": `providers:\n  openai:\n    modelOverrides:\n      gpt-5.1: { contextWindow: ${WINDOW}, maxTokens: 500 }\n`,
    },
  });
  await wait(daemon, "ready");
  return { service, daemon };
}
const idle = { isCompacting: false, isStreaming: false };

describe("case 19", () => {
  it("A: the huge result makes for one compaction at most; the run ends, well or with one error", async () => {
    const { service, daemon } = await start();
    const frames = await prompt(daemon, "go");
    expect(service.requests.length).toBeLessThanOrEqual(4);
    expect(frames.filter((frame) => frame.type === "auto_compaction_start").length).toBeLessThanOrEqual(1);
    expect(await ask(daemon, "get_state")).toMatchObject(idle);
    const last = sessionLines(sessionFiles(daemon.home)[0] ?? "").findLast((line) => line["type"] === "message");
    expect(last?.["message"]).toMatchObject({ role: "assistant", stopReason: "stop" });
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
    const { service, daemon } = await start({ summary });
    const frames = await prompt(daemon, "go");
    expect(service.requests.length).toBeLessThanOrEqual(4);
    expect(service.requests.filter(isSummary)).toHaveLength(1);
    expect(frames.filter((frame) => frame.type === "notice" && frame["level"] === "error")).toHaveLength(1);
    expect(await ask(daemon, "get_state")).toMatchObject(idle);
    const types = sessionLines(sessionFiles(daemon.home)[0] ?? "").map((line) => line["type"]);
    expect(types).not.toContain("compaction");
  });

  it("E: without usage the estimate decides, and not on every turn", async () => {
    const { service, daemon } = await start({
      answer: () => ({ text: `said ${"x".repeat(400)}`, usage: { input: 0, output: 0 } }),
    });
    for (const text of ["1", "2", "3", "4"]) await prompt(daemon, text);
    expect(service.requests).toHaveLength(4);
    expect(daemon.frames.filter((frame) => frame.type === "auto_compaction_start")).toEqual([]);
  });

  it("abort works while the summary is written", async () => {
    const { service, daemon } = await start({ summary: () => ({ text: "never", hold: new Promise(() => {}) }) });
    const began = daemon.frames.length;
    await ask(daemon, "prompt", { message: "go" });
    await wait(daemon, "auto_compaction_start", began);
    await ask(daemon, "abort");
    await wait(daemon, "agent_end", began);
    expect(await ask(daemon, "get_state")).toMatchObject(idle);
    expect(service.requests.length).toBeLessThanOrEqual(3);
  });
});
