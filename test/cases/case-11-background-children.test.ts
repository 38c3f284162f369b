// public-bugs 11, agent-semantics 12.51: a call returns when the shell exits, whatever its children hold open.
import { randomInt } from "node:crypto";
import { expect, it } from "vitest";
import { patience, useRigs } from "../builtin-tools/_built.ts";
import { processesWith } from "../support/process.ts";
import { ask, eventually, sleep } from "./_support.ts";

const { open } = useRigs();

/** Faulty behaviour lasts as long as the child: 70 s. */
const LIMIT_MS = 10_000;

it.each(["rpc", "rpc-ui"] as const)("returns when the shell exits, with %s (case 11, item 51)", patience, async (mode) => {
  const { daemon, call } = await open({ mode });
  const nap = `70.${randomInt(1e8)}`;
  const commands: [command: string, expected: string][] = [
    [`sleep ${nap} & echo front`, "front"],
    [`sleep ${nap} <&- >/dev/null & echo front`, "front"],
    [`setsid sleep ${nap} & echo front`, "front"],
    [`(while :; do echo tick; sleep 0.1${nap.slice(3)}; done) & sleep 0.5; echo front`, "front"],
    ["nohup sh -c 'sleep 2; echo late' & echo front", "front"],
    [`yes | head -c 3000000; sleep ${nap} & echo tail-marker`, "tail-marker"],
  ];
  for (const [command, expected] of commands) {
    const started = performance.now();
    const result = await call("bash", { command, timeout: 20 });
    expect(performance.now() - started, command).toBeLessThan(LIMIT_MS);
    expect(result).toMatchObject({ isError: false, details: { exitCode: 0 } });
    expect(result.text.split("\n"), command).toContain(expected);
    expect(result.text, command).toMatch(/still running in the background and will be ended with the daemon: \d+ \(/);
    const again = performance.now();
    const answer = await ask(daemon, "bash", { command });
    expect(performance.now() - again, command).toBeLessThan(LIMIT_MS);
    expect(answer).toMatchObject({ exitCode: 0, cancelled: false });
    expect(String(answer["output"]).split("\n"), command).toContain(expected);
    expect(answer["notes"]).toEqual([expect.stringContaining("still running in the background")]);
  }
  // What is still running prints in the meantime; none of it belongs to these calls.
  expect((await call("bash", { command: "sleep 2.2; echo next" })).text).toBe("next");
  expect(await ask(daemon, "bash", { command: "sleep 0.5; echo next" })).toMatchObject({ output: "next\n" });
  expect(processesWith(`sleep ${nap}`).length).toBeGreaterThanOrEqual(8);
  expect(await daemon.end()).toBe(0);
  await eventually("children end with the daemon", () => processesWith(nap.slice(3)).length === 0, LIMIT_MS);
  await sleep(300);
  expect(processesWith(nap.slice(3))).toEqual([]);
});
