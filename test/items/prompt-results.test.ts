// Protocol v2: every accepted prompt ends with one `prompt_result`, a queued one with what became of the run that took it.
import { describe, expect, it } from "vitest";
import { ask, sleep, useProcesses, wait } from "../cases/_support.ts";
import type { DaemonProcess } from "../support/process.ts";

const use = useProcesses();
const forever = () => new Promise<never>(() => {});

async function start(config = "retry:\n  enabled: false\n") {
  const service = await use.service();
  const daemon = use.start({ ...service.daemon, files: { "config.yml": config } });
  await wait(daemon, "ready");
  await ask(daemon, "negotiate_protocol", { protocolVersion: 2 });
  return { service, daemon };
}
const send = (daemon: DaemonProcess, id: string, more: Record<string, unknown> = {}) =>
  daemon.send({ id, type: "prompt", message: `text of ${id}`, ...more });
const resultOf = (daemon: DaemonProcess, id: string) =>
  wait(daemon, (frame) => frame.type === "prompt_result" && frame["id"] === id, 0);
const resultsOf = (daemon: DaemonProcess, id: string) =>
  daemon.frames.filter((frame) => frame.type === "prompt_result" && frame["id"] === id);

describe("prompt_result of a queued prompt", () => {
  it("is that of the run that took it: it failed", async () => {
    const { service, daemon } = await start();
    let goOn = () => {};
    const held = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    service.script({ text: "one two", chunk: 2, hold: held, holdAfter: 3 }, { failure: { status: 400, message: "No" } });
    send(daemon, "p1");
    await wait(daemon, "message_update");
    send(daemon, "p2", { streamingBehavior: "followUp" });
    await wait(daemon, (frame) => frame.type === "response" && frame["id"] === "p2", 0);
    goOn();
    expect(await resultOf(daemon, "p2")).toMatchObject({ agentInvoked: true, status: "error" });
    expect(await resultOf(daemon, "p1")).toMatchObject({ agentInvoked: true, status: "error" });
  });

  it("waits while the message waits: an abort leaves it queued, and the next run completes it", async () => {
    const { service, daemon } = await start();
    service.script({ text: "one two", chunk: 2, hold: forever(), holdAfter: 3 });
    service.otherwise({ text: "fine" });
    send(daemon, "p1");
    await wait(daemon, "message_update");
    send(daemon, "p2", { streamingBehavior: "followUp" });
    await ask(daemon, "abort");
    expect(await resultOf(daemon, "p1")).toMatchObject({ status: "aborted" });
    await sleep(50);
    expect(resultsOf(daemon, "p2")).toEqual([]);
    send(daemon, "p3");
    expect(await resultOf(daemon, "p3")).toMatchObject({ status: "completed" });
    expect(await resultOf(daemon, "p2")).toMatchObject({ status: "completed" });
    for (const id of ["p1", "p2", "p3"]) expect(resultsOf(daemon, id)).toHaveLength(1);
  });

  it("is aborted when the session is left before its turn came", async () => {
    const { service, daemon } = await start();
    service.script({ text: "one two", chunk: 2, hold: forever(), holdAfter: 3 });
    send(daemon, "p1");
    await wait(daemon, "message_update");
    send(daemon, "p2", { streamingBehavior: "followUp" });
    await ask(daemon, "new_session");
    expect(await resultOf(daemon, "p1")).toMatchObject({ status: "aborted" });
    expect(await resultOf(daemon, "p2")).toMatchObject({ status: "aborted" });
  });

  it("comes once the run is over that a compaction held it back for", async () => {
    const { service, daemon } = await start("compaction:\n  keepRecentTokens: 10\n");
    service.otherwise({ text: `said ${"x".repeat(400)}` });
    for (const id of ["p0", "p1"]) {
      send(daemon, id);
      await resultOf(daemon, id);
    }
    service.script({ text: "Summary", delayMs: 20 });
    daemon.send({ id: "c", type: "compact" });
    send(daemon, "p2");
    send(daemon, "p3");
    expect(await resultOf(daemon, "p2")).toMatchObject({ agentInvoked: true, status: "completed" });
    expect(await resultOf(daemon, "p3")).toMatchObject({ agentInvoked: true, status: "completed" });
    expect(daemon.frames.find((frame) => frame["id"] === "c" && frame.type === "response")).toMatchObject({ success: true });
  });
});
