// Case 9: cancelling the wait of a retry, and what still works afterwards.
import { describe, expect, it } from "vitest";
import { SERVICES } from "../anthropic/_services.ts";
import { ask, PATIENCE_MS, prompt, useProcesses, wait } from "./_support.ts";

const use = useProcesses();
const forever = () => new Promise<never>(() => {});

async function start(baseDelayMs = 2000) {
  const service = await use.service();
  const daemon = use.start({
    ...service.daemon,
    files: { "config.yml": `retry:\n  baseDelayMs: ${baseDelayMs}\n  maxRetries: 3\n` },
  });
  await wait(daemon, "ready");
  return { service, daemon };
}
const limited = { failure: { status: 429, message: "Slow down" } };
const limitedFor = (ms: number) => ({
  failure: { status: 429, message: "Slow down", headers: { "retry-after-ms": String(ms) } },
});

describe("case 9", () => {
  it("A: abort_retry in the second wait ends the chain with its attempt, and a second one is harmless (items 33, 34)", async () => {
    const { service, daemon } = await start(1);
    // The second wait is far longer than the test takes, so that it cannot be over before the host has spoken.
    service.script(limitedFor(1));
    service.otherwise(limitedFor(200_000));
    await ask(daemon, "prompt", { message: "p1" });
    await wait(daemon, (frame) => frame.type === "auto_retry_start" && frame["attempt"] === 1);
    await wait(daemon, (frame) => frame.type === "auto_retry_start" && frame["attempt"] === 2);
    await ask(daemon, "abort_retry");
    await ask(daemon, "abort_retry");
    const end = await wait(daemon, "auto_retry_end");
    expect(end).toMatchObject({ success: false, attempt: 2, finalError: expect.stringContaining("Retry cancelled") });
    await wait(daemon, "agent_end", daemon.frames.indexOf(end) - 5);
    expect((await ask(daemon, "get_state"))["isStreaming"]).toBe(false);
    expect(service.requests).toHaveLength(2);
    expect(daemon.frames.filter((frame) => frame.type === "auto_retry_end")).toHaveLength(1);
    // Nothing of the chain is left: the next prompt is one request.
    service.otherwise({ text: "fine" });
    const frames = await prompt(daemon, "p2");
    expect(frames.filter((frame) => /^auto_retry/.test(frame.type))).toEqual([]);
    expect(service.requests).toHaveLength(3);
  });

  it("B: after a retry that worked abort still closes the connection, and the counter starts anew", {
    timeout: PATIENCE_MS,
  }, async () => {
    const { service, daemon } = await start(1);
    service.script(limited, { text: "one two three", chunk: 2, hold: forever(), holdAfter: 5 }, limited, { text: "fine" });
    await ask(daemon, "prompt", { message: "p1" });
    await wait(daemon, "message_update");
    await ask(daemon, "abort");
    expect(await service.requests[1]?.closed).toBe(true);
    const first = await wait(daemon, "agent_end");
    const after = daemon.frames.indexOf(first) + 1;
    const frames = await prompt(daemon, "p2");
    expect(frames.filter((frame) => frame.type === "auto_retry_start").map((frame) => frame["attempt"])).toEqual([1]);
    expect(daemon.frames.slice(after).filter((frame) => frame.type === "agent_end")).toHaveLength(1);
    expect((await ask(daemon, "get_last_assistant_text"))["text"]).toBe("fine");
  });

  it("C: abort in the wait ends p1 once, and p2 of the same write runs", async () => {
    const { service, daemon } = await start(1);
    service.script(limitedFor(200_000), { text: "second" });
    const began = daemon.frames.length;
    await ask(daemon, "prompt", { message: "p1" });
    await wait(daemon, "auto_retry_start", began);
    daemon.send(`${JSON.stringify({ id: "a1", type: "abort" })}\n${JSON.stringify({ id: "p2", type: "prompt", message: "p2" })}`);
    const first = await wait(daemon, "agent_end", began);
    await wait(daemon, "agent_end", daemon.frames.indexOf(first) + 1);
    expect(daemon.frames.slice(began).filter((frame) => frame.type === "agent_end")).toHaveLength(2);
    expect(daemon.frames.slice(began).filter((frame) => frame.type === "auto_retry_end")).toHaveLength(1);
    expect(daemon.frames.find((frame) => frame["id"] === "p2")).toMatchObject({ success: true });
    expect((await ask(daemon, "get_last_assistant_text"))["text"]).toBe("second");
    expect(service.requests).toHaveLength(2);
  });

  it.each(SERVICES)("D: a failure that speaks of an abort nobody asked for is retried ($name)", async (under) => {
    const fake = await under.open();
    use.later(() => fake.close());
    const daemon = use.start({ ...under.options(fake), files: { "config.yml": "retry:\n  baseDelayMs: 1\n" } });
    await wait(daemon, "ready");
    // With a type of its own, without one, and as a status.
    const event = { type: "error", error: { message: "Request was aborted" } };
    fake.script(
      { streamError: { type: "server_error", message: "Request was aborted" }, cutAfter: 0 },
      { raw: { writes: [`event: error\ndata: ${JSON.stringify(event)}\n\n`] } },
      { failure: { status: 500, message: "Request was aborted" } },
      { text: "fine" },
    );
    const frames = await prompt(daemon, "p1");
    expect(frames.filter((frame) => frame.type === "auto_retry_start")).toHaveLength(3);
    expect((await ask(daemon, "get_last_assistant_text"))["text"]).toBe("fine");
  });

  it("a real abort never starts a retry", async () => {
    const { service, daemon } = await start(1);
    service.script({ text: "one two", chunk: 2, hold: forever(), holdAfter: 3 });
    await ask(daemon, "prompt", { message: "p1" });
    await wait(daemon, "message_update");
    await ask(daemon, "abort");
    await wait(daemon, "agent_end");
    expect(daemon.frames.filter((frame) => frame.type === "auto_retry_start")).toEqual([]);
    expect(service.requests).toHaveLength(1);
  });
});
