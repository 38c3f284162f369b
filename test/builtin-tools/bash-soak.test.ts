// Many commands that behave badly: nothing of them is left, neither while the daemon runs (but what was left running on purpose) nor
// after it. 1,000 runs with MORTISE_SOAK.
import { randomInt } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { ask, eventually, SOAK } from "../cases/_support.ts";
import { processesWith } from "../support/process.ts";
import { type Call, useRigs } from "./_built.ts";

const { open } = useRigs();
const RUNS = SOAK ? 1000 : 20;
const BIG = SOAK ? 100_000_000 : 10_000_000;
const BATCH = 10;
const MIB = 1024 * 1024;
/** Sockets of a fresh nursery. */
const NURSERY = 33;

it("bad commands leave no process, descriptor, file or memory behind", { timeout: SOAK ? 3600_000 : 150_000 }, async () => {
  const files = { "config.yml": "compaction:\n  enabled: false\n" };
  const rig = await open({ args: ["--no-session"], env: { PATH: process.env["PATH"] }, files });
  const mark = String(randomInt(1e9));
  const kinds: Call[] = [
    ["bash", { command: `sleep 300.${mark} & echo front` }],
    ["bash", { command: `bash -c "trap '' TERM; sleep 301.${mark}; sleep 301.${mark}"`, timeout: 1 }],
    ["bash", { command: `setsid sleep 302.${mark} >/dev/null 2>&1 & echo front` }],
    ["bash", { command: `trap '' TERM INT HUP; echo deaf; sleep 303.${mark}; sleep 303.${mark}`, timeout: 1 }],
    ["bash", { command: `head -c ${BIG} /dev/zero | tr '\\0' x` }],
    ["bash", { command: "exit 3" }],
    ["bash", { command: "kill -9 $$" }],
    ["bash", { command: "head -c 100000 /dev/urandom" }],
    ["bash", { command: "seq 1 20000 >&2" }],
    ["bash", { command: "exec sleep 0.1" }],
  ];
  const { pid } = rig.daemon.child;
  const descriptors = () => readdirSync(`/proc/${pid}/fd`).length;
  const memory = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024;
  const temporary = () =>
    readdirSync(tmpdir()).filter((name) => name.startsWith(`mortise-shell-`) || name.startsWith("mortise-artifacts-"));
  const filesBefore = new Set(temporary());
  await rig.turn(...kinds.slice(5));
  const before = { descriptors: descriptors(), memory: memory() };
  let [mostMemory, mostKept] = [0, 0];
  for (let done = 0; done < RUNS; done += BATCH) {
    // Often enough that requests stay small, seldom enough that outputs reach their limit.
    if (done % (12 * BATCH) === 0) await ask(rig.daemon, "new_session");
    const results = await rig.turn(...kinds);
    expect(results).toHaveLength(kinds.length);
    expect(results[0]?.text).toContain("front");
    expect(results[3]).toMatchObject({ isError: true, details: { timedOut: true } });
    expect(results[4]?.details).toMatchObject({ truncation: { totalBytes: BIG } });
    mostMemory = Math.max(mostMemory, memory());
    mostKept = Math.max(mostKept, keptBytes(results[4]?.details["fullOutputPath"]));
    expect(mostMemory - before.memory).toBeLessThan(200 * MIB);
    // artifacts.maxBytes, and the output that was written last.
    expect(mostKept).toBeLessThan(1024 * MIB + 2 * BIG);
  }
  await eventually(
    "timed out commands are gone",
    () => processesWith(`301.${mark}`).length + processesWith(`303.${mark}`).length === 0,
    10_000,
  );
  // A command that left a child behind keeps the pipe of that child open, and a nursery of shells has a socket for each that it may
  // still start; nothing else is kept.
  await eventually("descriptors are given back", () => descriptors() <= before.descriptors + RUNS / BATCH + NURSERY, 10_000);
  console.log(
    `${RUNS} runs: memory ${(before.memory / MIB).toFixed(0)} MiB before, ${(mostMemory / MIB).toFixed(0)} at most; ` +
      `descriptors ${before.descriptors} before, ${descriptors()} after, of them ${RUNS / BATCH} of children left running; ` +
      `outputs ${(mostKept / MIB).toFixed(0)} MiB at most`,
  );
  expect(await rig.daemon.end()).toBe(0);
  await eventually("all children are gone", () => processesWith(mark).length === 0, 10_000);
  // Other tests on the machine have files of their own; what this daemon made is gone.
  await eventually(
    "no file is left",
    () => temporary().every((name) => filesBefore.has(name) || !readdirOf(name).some((file) => file.endsWith(".bash.log"))),
    10_000,
  );
});

function keptBytes(file: unknown): number {
  const folder = dirname(String(file));
  return readdirSync(folder).reduce((sum, name) => sum + (statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0), 0);
}

function readdirOf(name: string): string[] {
  try {
    return readdirSync(`${tmpdir()}/${name}`);
  } catch {
    return [];
  }
}
