// Many subagents with commands on the built daemon: 64 of them, two levels deep, when MORTISE_SOAK is set. All results arrive once;
// an abort ends every one within three seconds and leaves no process and no open session.
import { randomInt } from "node:crypto";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { bash, lives, spawns, startPlay, type Turn, taskResults } from "../../cases/_subagents.ts";
import { ask, eventually, SOAK, useProcesses } from "../../cases/_support.ts";
import type { FakeReply } from "../../support/fake-provider.ts";
import { processesWith } from "../../support/process.ts";

const use = useProcesses();
const patience = { timeout: 300_000 };
/** 8 children with 7 grandchildren each are 64. */
const WIDTH = SOAK ? 8 : 3;
const BELOW = SOAK ? 7 : 2;
const ALL = WIDTH * (BELOW + 1);
const files = { "config.yml": "agent:\n  maxConcurrency: 0\n" };

/** Two levels of them; each leaf runs `command` and says what it is. */
const family =
  (command: (told: string) => string) =>
  ({ told, turn }: Turn): FakeReply => {
    const names = (prefix: string, count: number) => Array.from({ length: count }, (_, index) => ({ task: `${prefix}${index}` }));
    if (told === "Go") return turn === 0 ? spawns(...names("child-", WIDTH)) : { text: "done" };
    if (/^child-\d+$/.test(told)) return turn === 0 ? spawns(...names(`${told}/leaf-`, BELOW)) : { text: `sum of ${told}` };
    return turn === 0 ? bash(command(told)) : { text: `leaf ${told}` };
  };

it(`${ALL} give one result each`, patience, async () => {
  const { daemon, service } = await startPlay(
    use,
    family((told) => `echo "${told}"`),
    { files },
  );
  daemon.send({ id: "go", type: "prompt", message: "Go" });
  await daemon.next("agent_end", { timeoutMs: 240_000 });
  const [result, ...more] = taskResults(daemon);
  expect(more).toEqual([]);
  expect(result?.details.results.map(({ exitCode, output }) => [exitCode, output])).toEqual(
    Array.from({ length: WIDTH }, (_, index) => [0, `sum of child-${index}`]),
  );
  expect([...lives(daemon).values()]).toEqual(new Array(ALL).fill("completed"));
  const frames = daemon.frames.filter((frame) => frame.type === "subagent_lifecycle");
  expect(frames).toHaveLength(2 * ALL);
  // Two answers of each, and the parent's own two.
  expect(service.requests).toHaveLength(2 * ALL + 2);
  expect(service.requests.filter(({ refusal }) => refusal !== undefined)).toEqual([]);
  expect(await daemon.end()).toBe(0);
});

it(`${ALL} end with an abort, and nothing is left`, patience, async () => {
  const mark = String(randomInt(1e8));
  use.later(() => {
    for (const line of processesWith(`.${mark}`)) process.kill(Number.parseInt(line, 10), "SIGKILL");
  });
  const { daemon, service } = await startPlay(
    use,
    family(() => `trap '' TERM; sleep 92.${mark}; sleep 92.${mark}`),
    { files },
  );
  daemon.send({ id: "go", type: "prompt", message: "Go" });
  await eventually("all commands run", () => processesWith(`sleep 92.${mark}`).length === WIDTH * BELOW, 120_000);
  expect(lives(daemon).size).toBe(ALL);
  const began = performance.now();
  await ask(daemon, "abort");
  await eventually("all are aborted", () => [...lives(daemon).values()].every((each) => each === "aborted"), 30_000);
  const aborted = performance.now() - began;
  await eventually("no command is left", () => processesWith(`.${mark}`).length === 0, 30_000);
  const gone = performance.now() - began;
  if (SOAK) console.log(`${ALL} aborted after ${Math.round(aborted)} ms, the last process gone after ${Math.round(gone)} ms`);
  // The commands ignore TERM, so KILL comes after two seconds; with other work on the machine ending all of them takes longer.
  expect(gone).toBeLessThan(20_000);
  expect(taskResults(daemon)).toHaveLength(1);
  expect(await ask(daemon, "get_subagents")).toEqual({ subagents: [] });
  const locks = () =>
    readdirSync(join(daemon.home, "sessions"), { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".lock"));
  await eventually("one session is open", () => locks().length === 1, 30_000);
  const asked = service.requests.length;
  expect(await daemon.end()).toBe(0);
  expect(service.requests).toHaveLength(asked);
});
