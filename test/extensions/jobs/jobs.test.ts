// Jobs (agent-semantics §8): owned, delivered exactly once, ended with their conversation.
import { afterEach, describe, expect, it } from "vitest";
import { type JobResult, Jobs } from "../../../core/extension.ts";
import { startDaemon, type TestDaemon } from "../../../core/testing.ts";
import { calls, Gate, type ScriptedProvider, says, scriptedModel, scriptedProvider } from "../../support/scripted-provider.ts";

let daemon: TestDaemon | undefined;
afterEach(async () => {
  await daemon?.stop();
  daemon = undefined;
});

async function start(provider: ScriptedProvider, config?: string) {
  daemon = await startDaemon({
    extensions: { scripted: [[provider.definition]] },
    files: config === undefined ? {} : { "config.yml": config },
  });
  const { conversations, kernel } = daemon.daemon;
  conversations.attached.select({ model: scriptedModel });
  return { d: daemon, conversations, jobs: kernel.services.use(Jobs) };
}

/** A job that a test ends. */
function work() {
  let end: (result: JobResult) => void = () => {};
  let fail: (error: Error) => void = () => {};
  let signal: AbortSignal | undefined;
  return {
    run: (given: AbortSignal) => {
      signal = given;
      return new Promise<JobResult>((resolve, reject) => {
        end = resolve;
        fail = reject;
        given.addEventListener("abort", () => reject(given.reason));
      });
    },
    end: (text: string, failed = false) => end({ text, failed }),
    fail: (text: string) => fail(new Error(text)),
    signal: () => signal,
  };
}

const deliveries = (provider: ScriptedProvider, text: string) =>
  JSON.stringify(provider.requests.at(-1)?.messages.map((message) => message.content)).split(text).length - 1;

describe("Jobs", () => {
  it("wake an idle conversation with their result, exactly once", async () => {
    const provider = scriptedProvider(says("hi"), says("seen"));
    const { d, conversations, jobs } = await start(provider);
    await d.prompt("Hello");
    const job = work();
    const info = jobs.start({ conversation: conversations.attached, type: "bash", label: "make all", run: job.run });
    expect(jobs.running(conversations.attached)).toBe(1);
    const after = d.frames.length;
    job.end("RESULT-17");
    await d.next("agent_end", { after });
    expect(deliveries(provider, "RESULT-17")).toBe(1);
    expect(jobs.take(conversations.attached, info.id)).toMatchObject({ status: "completed", resultText: "RESULT-17" });
    await d.prompt("Again").catch(() => {});
    expect(deliveries(provider, "RESULT-17")).toBe(1);
  });

  it("that end while a run goes on continue it before its agent_end", async () => {
    const gate = new Gate();
    const provider = scriptedProvider(
      [
        { type: "text_start", index: 0 },
        { type: "text_delta", index: 0, delta: "a" },
        gate,
        { type: "done", stopReason: "stop" },
      ],
      says("seen"),
    );
    const { d, conversations, jobs } = await start(provider);
    const job = work();
    jobs.start({ conversation: conversations.attached, type: "bash", label: "make", run: job.run });
    const run = d.prompt("Hello");
    await d.next("message_update");
    job.end("RESULT-18");
    await jobs.whenIdle(conversations.attached);
    gate.open();
    const frames = await run;
    expect(frames.filter((frame) => frame.type === "agent_end")).toHaveLength(1);
    expect(provider.requests).toHaveLength(2);
    expect(deliveries(provider, "RESULT-18")).toBe(1);
  });

  it("whose result the job tool gave are not delivered again", async () => {
    const job = work();
    const provider = scriptedProvider(calls({ id: "c", name: "job", args: { op: "wait" } }), says("done"));
    const { d, conversations, jobs } = await start(provider);
    jobs.start({ conversation: conversations.attached, type: "bash", label: "make", run: job.run });
    const run = d.prompt("Wait for it");
    await d.next("tool_execution_start");
    job.end("RESULT-19");
    await run;
    expect(provider.requests).toHaveLength(2);
    expect(deliveries(provider, "RESULT-19")).toBe(1);
    expect(conversations.attached.isStreaming).toBe(false);
  });

  it("that throw or say so have failed", async () => {
    const provider = scriptedProvider(says("one"), says("two"));
    const { d, conversations, jobs } = await start(provider);
    const [thrown, said] = [work(), work()];
    const first = jobs.start({ conversation: conversations.attached, type: "bash", label: "a", run: thrown.run });
    thrown.fail("No such file");
    await d.next("agent_end", { after: 0 });
    const after = d.frames.length;
    const second = jobs.start({ conversation: conversations.attached, type: "bash", label: "b", run: said.run });
    said.end("exit code 2", true);
    await d.next("agent_end", { after });
    expect(jobs.list().map(({ id, status, errorText }) => [id, status, errorText])).toEqual([
      [first.id, "failed", "No such file"],
      [second.id, "failed", "exit code 2"],
    ]);
  });

  it("are cancelled by the tool, by abort and with their own conversation only", async () => {
    const provider = scriptedProvider(says("x"));
    const { d, conversations, jobs } = await start(provider);
    const first = conversations.attached;
    const other = conversations.create();
    const [a, b, c, keep] = [work(), work(), work(), work()];
    const one = jobs.start({ conversation: first, type: "bash", label: "a", run: a.run });
    expect(await jobs.cancel(first, one.id)).toBe(true);
    expect(await jobs.cancel(first, one.id)).toBe(false);
    expect(jobs.take(first, one.id)?.status).toBe("cancelled");
    jobs.start({ conversation: first, type: "bash", label: "b", run: b.run });
    const kept = jobs.start({ conversation: other, type: "bash", label: "keep", run: keep.run });
    await d.ask("abort");
    expect(b.signal()?.aborted).toBe(true);
    jobs.start({ conversation: first, type: "bash", label: "c", run: c.run });
    await d.ask("new_session");
    expect(c.signal()?.aborted).toBe(true);
    expect(keep.signal()?.aborted).toBe(false);
    expect(await jobs.cancel(first, kept.id)).toBe(false);
    expect(provider.requests).toHaveLength(0);
    await conversations.close(other);
    expect(keep.signal()?.aborted).toBe(true);
  });

  it("are limited by async.maxJobs and off with async.enabled: false", async () => {
    const { conversations, jobs } = await start(scriptedProvider(), "async:\n  maxJobs: 1\n");
    const conversation = conversations.attached;
    jobs.start({ conversation, type: "bash", label: "a", run: work().run });
    expect(() => jobs.start({ conversation, type: "bash", label: "b", run: work().run })).toThrow(
      /1 jobs are running, the limit is 1/,
    );
    expect(conversation.toolSchemas().map(({ name }) => name)).toContain("job");
    await daemon?.stop();
    const off = await start(scriptedProvider(), "async:\n  enabled: false\n");
    expect(() => off.jobs.start({ conversation: off.conversations.attached, type: "bash", label: "a", run: work().run })).toThrow(
      /async.enabled/,
    );
    expect(off.conversations.attached.toolSchemas().map(({ name }) => name)).not.toContain("job");
  });

  it("are shown by /jobs", async () => {
    const { d, conversations, jobs } = await start(scriptedProvider());
    expect((await d.prompt("/jobs")).map((frame) => frame["text"])).toContain("No background jobs");
    const { id } = jobs.start({ conversation: conversations.attached, type: "bash", label: "make all", run: work().run });
    const shown = await d.prompt("/jobs");
    expect(JSON.stringify(shown)).toMatch(new RegExp(`${id} {2}bash {2}running .* make all`));
    await d.prompt(`/jobs cancel ${id}`);
    expect(jobs.running(conversations.attached)).toBe(0);
  });
});
