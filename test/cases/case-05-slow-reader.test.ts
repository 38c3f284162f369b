// public-bugs 5, agent-semantics 12.7: a host that reads slowly, or not at all for a while, loses no response and no message.
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import type { DaemonProcess } from "../support/process.ts";
import { ask, ofId, SOAK, sessionText, sleep, textOf, useProcesses, userMessage, wait } from "./_support.ts";

const { start, service } = useProcesses();

const bigSession = (message: string) => ({ "cwd/big.jsonl": sessionText("/", [userMessage(message)]) });

/** Takes 4 KiB every 5 ms, as a host that does other things between. */
async function readSlowly(daemon: DaemonProcess, after: number): Promise<void> {
  await sleep(after);
  const { stdout } = daemon.child;
  if (stdout === null) return;
  stdout.pause();
  while (!stdout.readableEnded && !stdout.destroyed) {
    stdout.read(Math.min(4096, stdout.readableLength || 4096)) ?? stdout.read();
    await sleep(5);
  }
}

it.each([
  { name: "with the limit of v1", args: [], whole: false },
  { name: "without a limit", args: ["--max-frame-bytes", "0"], whole: true },
])(
  "gives all answers to a slow reader after the end of input, $name (case 5 A, item 7)",
  async ({ args, whole }) => {
    const text = "m".repeat(1_500_000);
    const daemon = start({ args: ["--session", "big.jsonl", ...args], files: bigSession(text), paused: true });
    for (let index = 0; index < 128; index++) daemon.send({ id: `e${index}`, type: "get_state" });
    daemon.send({ id: "big", type: "get_messages" });
    const ended = daemon.end();
    await readSlowly(daemon, 500);
    expect(await ended).toBe(0);
    const responses = daemon.frames.filter((frame) => frame.type === "response");
    expect(responses.map((frame) => frame["id"])).toEqual([...Array.from({ length: 128 }, (_, index) => `e${index}`), "big"]);
    expect(responses.slice(0, 128).every((frame) => frame["success"] === true)).toBe(true);
    const big = responses.at(-1);
    if (whole) expect(textOf(((big?.["data"] ?? { messages: [] }) as { messages: unknown[] }).messages[0])).toBe(text);
    else expect(big).toMatchObject({ success: false, code: "too_large" });
    expect(daemon.stdout().endsWith("\n")).toBe(true);
  },
  120_000,
);

it("gives up when nobody reads at all (case 5 A)", async () => {
  const daemon = start({
    args: ["--session", "big.jsonl", "--max-frame-bytes", "0"],
    files: bigSession("m".repeat(1_500_000)),
    paused: true,
  });
  daemon.send({ id: "big", type: "get_messages" });
  // At the exit Node reads what is left in the pipe: half a frame, which is what this test is about.
  daemon.child.stdout?.removeAllListeners("data");
  const exit = new Promise<number | null>((resolve) => daemon.child.once("exit", resolve));
  const started = Date.now();
  daemon.child.stdin?.end();
  const code = await exit;
  // 10 s without progress; the rest is a busy machine.
  expect(Date.now() - started).toBeGreaterThan(8_000);
  expect(Date.now() - started).toBeLessThan(40_000);
  expect(code).not.toBeNull();
  daemon.child.stdout?.destroy();
}, 90_000);

const memory = (daemon: DaemonProcess): number => {
  const status = readFileSync(`/proc/${daemon.child.pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
};

it("stays small while nobody reads, aborts all the same, and delivers every text (case 5 B)", async () => {
  const step = SOAK ? 5_000 : 1_000;
  const fake = await service();
  const deltas = Array.from({ length: 5_000 }, (_, index) => `${index} `.padEnd(40, "0123456789 "));
  fake.script({ text: deltas, hold: new Promise(() => {}), holdAfter: deltas.length + 1 });
  const daemon = start(fake.daemon);
  await ask(daemon, "get_state");
  const before = memory(daemon);
  let most = before;
  const watching = setInterval(() => {
    most = Math.max(most, memory(daemon));
  }, 50);
  try {
    daemon.child.stdout?.pause();
    daemon.send({ id: "p", type: "prompt", message: "go" });
    const provider = await fake.request(1);
    await sleep(step);
    daemon.send({ id: "s", type: "get_state" });
    await sleep(step);
    daemon.send({ id: "a", type: "abort" });
    const aborted = Date.now();
    expect(await provider.closed).toBe(true);
    expect(Date.now() - aborted).toBeLessThan(SOAK ? 2_000 : 10_000);
    await sleep(step);
    expect(daemon.child.exitCode).toBeNull();
  } finally {
    clearInterval(watching);
    daemon.resume();
  }
  await wait(daemon, "agent_end", 0);
  await wait(daemon, (frame) => frame["id"] === "a", 0);
  expect(ofId(daemon, "s")).toMatchObject([{ success: true }]);
  expect(ofId(daemon, "a")).toMatchObject([{ success: true }]);
  expect(most - before).toBeLessThan(150);

  const end = daemon.frames.find(
    (frame) => frame.type === "message_end" && (frame["message"] as { role: string }).role === "assistant",
  );
  const final = textOf(end?.["message"]);
  const streamed = daemon.frames
    .filter((frame) => frame.type === "message_update")
    .map((frame) => frame["assistantMessageEvent"] as { type: string; delta?: string })
    .filter((event) => event.type === "text_delta")
    .map((event) => event.delta)
    .join("");
  expect(streamed).toBe(final);
  expect(deltas.join("").startsWith(final)).toBe(true);
  expect(final.length).toBeGreaterThan(0);
  for (const type of ["turn_end", "agent_end"])
    expect(
      daemon.frames.filter((frame) => frame.type === type),
      type,
    ).toHaveLength(1);
  expect(await daemon.end()).toBe(0);
}, 120_000);
