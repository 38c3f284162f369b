// Case 8: abort and steer around a running compaction, on the built daemon.
import { describe, expect, it } from "vitest";
import type { FakeReply, RecordedRequest } from "../support/fake-provider.ts";
import type { DaemonProcess } from "../support/process.ts";
import { ask, ofId, prompt, request, sessionFiles, sessionLines, sleep, useProcesses, wait } from "./_support.ts";

const use = useProcesses();
/** Several frames in one write. */
const together = (daemon: DaemonProcess, frames: readonly Record<string, unknown>[]) =>
  daemon.send(frames.map((frame) => JSON.stringify(frame)).join("\n"));
const isSummary = (request: RecordedRequest) => JSON.stringify(request.body).includes("You write hand-over notes");

async function start(summary: (request: RecordedRequest) => FakeReply | Promise<FakeReply>, config = "") {
  const service = await use.service();
  service.otherwise((request) =>
    isSummary(request) ? summary(request) : { text: `said ${"x".repeat(400)}`, usage: { input: 900 } },
  );
  const daemon = use.start({
    ...service.daemon,
    files: { "config.yml": `retry:\n  baseDelayMs: 1\ncompaction:\n  keepRecentTokens: 40\n${config}` },
  });
  await wait(daemon, "ready");
  return { service, daemon };
}

describe("case 8", () => {
  it("A: abort, twice, ends the compaction and its connection; the prompt after it runs", async () => {
    const { service, daemon } = await start(() => ({ text: "never", hold: new Promise(() => {}) }));
    for (const text of ["one", "two", "three"]) await prompt(daemon, text);
    const [file = ""] = sessionFiles(daemon.home);
    const before = sessionLines(file);
    const held = service.request(4);
    daemon.send({ id: "c1", type: "compact" });
    const summary = await held;
    expect(await ask(daemon, "get_state")).toMatchObject({ isCompacting: true });
    const after = daemon.frames.length;
    for (const frame of [
      { id: "a1", type: "abort" },
      { id: "a2", type: "abort" },
      { id: "g1", type: "get_state" },
      { id: "p1", type: "prompt", message: "go on" },
    ])
      daemon.send(frame);
    expect(await summary.closed).toBe(true);
    await wait(daemon, "agent_end", after);
    expect(ofId(daemon, "c1")).toMatchObject([
      { success: false, code: "cancelled", error: expect.stringContaining("cancelled") },
    ]);
    for (const id of ["a1", "a2", "p1"]) expect(ofId(daemon, id)).toMatchObject([{ success: true }]);
    // Free at once, not when p1 is through.
    expect(ofId(daemon, "g1")).toMatchObject([{ data: { isCompacting: false } }]);
    expect(JSON.stringify(service.requests.at(-1)?.body)).toContain("go on");
    expect(await ask(daemon, "get_state")).toMatchObject({ isCompacting: false, isStreaming: false });
    const lines = sessionLines(file);
    expect(lines.slice(0, before.length)).toEqual(before);
    expect(lines.map((line) => line["type"])).not.toContain("compaction");
    // All in one write: it ends before the service hears of it.
    const later = daemon.frames.length;
    const asked = service.requests.length;
    together(daemon, [
      { id: "c3", type: "compact" },
      { id: "a3", type: "abort" },
      { id: "g3", type: "get_state" },
      { id: "p3", type: "prompt", message: "and on" },
    ]);
    await wait(daemon, "agent_end", later);
    expect(ofId(daemon, "c3")).toMatchObject([{ success: false, code: "cancelled" }]);
    expect(ofId(daemon, "g3")).toMatchObject([{ data: { isCompacting: false } }]);
    expect(service.requests.slice(asked).filter(isSummary)).toEqual([]);
    expect(JSON.stringify(service.requests.at(-1)?.body)).toContain("and on");
  });

  it("A: the same for a compaction that began by itself", async () => {
    const idle = "  idleEnabled: true\n  idleTimeoutSeconds: 0.1\n  idleThresholdTokens: 100\n";
    const { service, daemon } = await start(() => ({ text: "never", hold: new Promise(() => {}) }), idle);
    // One prompt: between two of them it might begin as well.
    await prompt(daemon, "one ".repeat(400));
    const summary = await service.request(2);
    expect(isSummary(summary)).toBe(true);
    const after = daemon.frames.length;
    together(daemon, [
      { id: "g0", type: "get_state" },
      { id: "a1", type: "abort" },
      { id: "a2", type: "abort" },
      { id: "g1", type: "get_state" },
      { id: "p1", type: "prompt", message: "go on" },
    ]);
    expect(await summary.closed).toBe(true);
    await wait(daemon, "agent_end", after);
    for (const id of ["a1", "a2", "p1"]) expect(ofId(daemon, id)).toMatchObject([{ success: true }]);
    expect(ofId(daemon, "g0")).toMatchObject([{ data: { isCompacting: true } }]);
    expect(ofId(daemon, "g1")).toMatchObject([{ data: { isCompacting: false } }]);
    expect(daemon.frames.find((frame) => frame.type === "auto_compaction_end")).toMatchObject({
      aborted: true,
      willRetry: false,
    });
    expect(JSON.stringify(service.requests[2]?.body)).toContain("go on");
    const types = sessionLines(sessionFiles(daemon.home)[0] ?? "").map((line) => line["type"]);
    expect(types).not.toContain("compaction");
    expect(types.filter((type) => type === "message")).toHaveLength(4);
  });

  it("B: a steer in the same write as compact during a turn is delivered exactly once afterwards", async () => {
    const { service, daemon } = await start(() => ({ text: "## Goal\nSummed up" }));
    for (const text of ["one", "two", "three"]) await prompt(daemon, text);
    service.script({ text: "slow one", chunk: 2, hold: new Promise(() => {}), holdAfter: 3 });
    const began = daemon.frames.length;
    await ask(daemon, "prompt", { message: "slow" });
    await wait(daemon, "message_update", began);
    together(daemon, [
      { id: "c2", type: "compact" },
      { id: "g2", type: "get_state" },
      { id: "s2", type: "steer", message: "keep me" },
    ]);
    const done = await wait(daemon, (frame) => frame["id"] === "c2" && frame.type === "response", began);
    expect(done).toMatchObject({ success: true });
    expect(ofId(daemon, "g2")).toMatchObject([{ data: { isCompacting: true } }]);
    expect(ofId(daemon, "s2")).toMatchObject([{ success: true }]);
    await wait(daemon, "agent_end", daemon.frames.indexOf(done));
    const texts = sessionLines(sessionFiles(daemon.home)[0] ?? "").filter((line) => JSON.stringify(line).includes("keep me"));
    expect(texts.filter((line) => (line["message"] as { role?: string } | undefined)?.role === "user")).toHaveLength(1);
    expect(await ask(daemon, "get_state")).toMatchObject({ isCompacting: false, queuedMessageCount: 0 });
    const carrying = service.requests.filter((request) => JSON.stringify(request.body).includes("keep me"));
    expect(carrying).toHaveLength(1);
    expect(JSON.stringify(carrying[0]?.body).match(/keep me/g)).toHaveLength(1);
    expect(JSON.stringify(carrying[0]?.body)).toContain("Summed up");
    // The same while nothing runs, with all that a host may send meanwhile.
    for (const text of ["four", "five"]) await prompt(daemon, text);
    const idle = daemon.frames.length;
    const asked = service.requests.length;
    together(daemon, [
      { id: "c3", type: "compact" },
      { id: "s3", type: "steer", message: "hold steer" },
      { id: "f3", type: "follow_up", message: "hold follow-up" },
      { id: "p3", type: "prompt", message: "hold prompt" },
      { id: "c4", type: "compact" },
    ]);
    await wait(daemon, "agent_end", idle);
    for (const id of ["c3", "s3", "f3", "p3"]) expect(ofId(daemon, id)).toMatchObject([{ success: true }]);
    expect(ofId(daemon, "c4")).toMatchObject([{ success: false, code: "busy" }]);
    expect(service.requests.slice(asked).map(isSummary)).toEqual([true, false, false]);
    const last = JSON.stringify(service.requests.at(-1)?.body);
    for (const text of ["hold steer", "hold follow-up", "hold prompt"]) expect(last.split(text)).toHaveLength(2);
    expect(service.requests.filter((request) => request.refusal !== undefined)).toEqual([]);
  });

  it("C: a summary that fails is tried a bounded number of times, shown once, and not again while nothing changes", async () => {
    const idle = "  idleEnabled: true\n  idleTimeoutSeconds: 0.1\n  idleThresholdTokens: 100\n";
    let status = 500;
    const { service, daemon } = await start(() => ({ failure: { status, message: "Out of order" } }), idle);
    await prompt(daemon, "one ".repeat(400));
    await wait(daemon, (frame) => frame.type === "auto_compaction_end");
    const tried = service.requests.filter(isSummary).length;
    expect(tried).toBe(3);
    // A dozen of the idle times.
    await sleep(1500);
    expect(service.requests.filter(isSummary)).toHaveLength(tried);
    expect(daemon.frames.filter((frame) => frame.type === "auto_compaction_end")).toHaveLength(1);
    expect(daemon.frames.find((frame) => frame.type === "auto_compaction_end")).toMatchObject({
      errorMessage: expect.stringContaining("Out of order"),
    });
    expect(await ask(daemon, "get_state")).toMatchObject({ isCompacting: false, isStreaming: false });
    // Refused for good from here on, which takes no time.
    status = 400;
    // The host asks, and then the context has changed: two reasons to try again.
    expect(await request(daemon, "compact")).toMatchObject({ success: false, error: expect.stringContaining("Out of order") });
    expect(service.requests.filter(isSummary).length).toBeGreaterThan(tried);
    const before = daemon.frames.length;
    await prompt(daemon, "three");
    await wait(daemon, "auto_compaction_end", before);
  });
});
