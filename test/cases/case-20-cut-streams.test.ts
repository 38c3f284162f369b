// Case 20: a stream that ends in the middle is never taken for whole.
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { SERVICES } from "../anthropic/_services.ts";
import type { FakeReply, FakeServer } from "../support/fake-provider.ts";
import type { DaemonProcess } from "../support/process.ts";
import { ask, prompt, useProcesses, wait } from "./_support.ts";

const use = useProcesses();
const open: FakeServer[] = [];
afterEach(async () => {
  for (const fake of open.splice(0)) await fake.close();
});
const HALF = '{"command":"rm -rf ./build/tmp';

describe.each(SERVICES)("case 20 ($name)", (under) => {
  const start = async (config = "retry:\n  baseDelayMs: 1\n") => {
    const fake = await under.open();
    open.push(fake);
    const daemon = use.start({ ...under.options(fake), files: { "config.yml": config } });
    await wait(daemon, "ready");
    mkdirSync(join(daemon.cwd, "build", "tmp"), { recursive: true });
    return { fake, daemon };
  };
  const stands = (daemon: DaemonProcess) => existsSync(join(daemon.cwd, "build", "tmp"));
  const refusals = (fake: FakeServer) => fake.requests.filter((request) => request.refusal !== undefined);
  const text = async (daemon: DaemonProcess) => (await ask(daemon, "get_last_assistant_text"))["text"];

  const cuts: readonly [string, FakeReply][] = [
    ["1: the socket is destroyed", { toolCalls: [{ name: "bash", json: HALF, chunk: 6, unclosed: true }], cut: "destroy" }],
    [
      "2: the connection ends in order without an end event",
      { toolCalls: [{ name: "bash", json: HALF, chunk: 6, unclosed: true }], cut: "end" },
    ],
    [
      "3: the end comes without the end of the arguments",
      { toolCalls: [{ name: "bash", json: HALF, chunk: 6, unclosed: true }] },
    ],
  ];
  it.each(cuts)("%s: the call never runs, and the turn is tried again", async (_what, reply) => {
    const { fake, daemon } = await start();
    fake.script(reply, { text: "Recovered" });
    await prompt(daemon, "go");
    expect(stands(daemon)).toBe(true);
    expect(await text(daemon)).toBe("Recovered");
    expect(refusals(fake)).toEqual([]);
  });

  it("4: of two calls the one that the output limit cut is answered with an error, the whole one runs", async () => {
    const { fake, daemon } = await start();
    const whole = { name: "bash", arguments: { command: "mkdir ran" } };
    fake.script({ toolCalls: [whole, { name: "bash", json: HALF }], stop: "length" }, { text: "In smaller steps" });
    const frames = await prompt(daemon, "go");
    expect(stands(daemon)).toBe(true);
    expect(existsSync(join(daemon.cwd, "ran"))).toBe(true);
    const results = frames
      .filter((frame) => frame.type === "message_end")
      .map((frame) => frame["message"] as Record<string, unknown>)
      .filter((message) => message["role"] === "toolResult");
    expect(results.map((message) => message["isError"])).toEqual([false, true]);
    expect(JSON.stringify(results[1])).toMatch(/cut|limit/i);
    expect(await text(daemon)).toBe("In smaller steps");
    expect(refusals(fake)).toEqual([]);
  });

  it("5: a call without arguments runs with {}; a stop for tools without a call is no silent end", async () => {
    const { fake, daemon } = await start();
    fake.script({ toolCalls: [{ name: "ls", json: "" }] }, { text: "Listed" });
    const frames = await prompt(daemon, "list");
    expect(frames.find((frame) => frame.type === "tool_execution_end")).toMatchObject({ isError: false });
    expect(await text(daemon)).toBe("Listed");
    fake.script({ text: "About to", stop: "toolUse" }, { text: "Said at last" });
    await prompt(daemon, "again");
    expect(await text(daemon)).toBe("Said at last");
    expect(refusals(fake)).toEqual([]);
  });

  const bodies: readonly [string, NonNullable<FakeReply["raw"]>][] = [
    ["an empty body", { writes: [] }],
    ["a web page", { headers: { "content-type": "text/html" }, writes: ["<html><body>Bad gateway</body></html>"] }],
    ["broken JSON", { writes: ["data: {bad\n\n"] }],
  ];
  it.each(bodies)("6, 7: %s is an error of the turn, which is tried again", async (_what, raw) => {
    const { fake, daemon } = await start();
    fake.script({ raw }, { text: "Recovered" });
    const frames = await prompt(daemon, "go");
    expect(frames.filter((frame) => frame.type === "auto_retry_start")).toHaveLength(1);
    expect(await text(daemon)).toBe("Recovered");
    expect(refusals(fake)).toEqual([]);
  });

  it("7: an error event after three deltas, and silence, are retried; agent_end always comes", { timeout: 60_000 }, async () => {
    const { fake, daemon } = await start("retry:\n  baseDelayMs: 1\nproviders:\n  idleTimeoutMs: 700\n");
    fake.script(
      { text: "one two three four", chunk: 4, cutAfter: 4, streamError: { type: "overloaded_error", message: "Overloaded" } },
      { text: "silence", hold: new Promise(() => {}) },
      { text: "Recovered" },
    );
    const frames = await prompt(daemon, "go");
    expect(frames.filter((frame) => frame.type === "auto_retry_start")).toHaveLength(2);
    expect(await text(daemon)).toBe("Recovered");
    fake.script({ text: "Bye" });
    await prompt(daemon, "thanks");
    expect(refusals(fake)).toEqual([]);
  });

  it("6: legal oddities of server-sent events are understood", async () => {
    const { fake, daemon } = await start();
    // Three megabytes are more than the model's window.
    await ask(daemon, "set_auto_compaction", { enabled: false });
    fake.script({ text: "größer ✓ 🧪", chunk: 1, delayMs: 1 }, { text: "x".repeat(3 * 1024 * 1024) }, { text: "fine" });
    await prompt(daemon, "split");
    expect(await text(daemon)).toBe("größer ✓ 🧪");
    await prompt(daemon, "large");
    await prompt(daemon, "after");
    expect(await text(daemon)).toBe("fine");
    expect(refusals(fake)).toEqual([]);
  });
});
