// 64 subagents at once, two levels deep: the limit holds, every one has exactly one result, and an abort ends everything.
import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import type { TestDaemon } from "../../../core/testing.ts";
import { Gate } from "../../support/scripted-provider.ts";
import { noneLeft, type Play, says, spawns, start, taskResults } from "./_start.ts";

const SOAK = process.env["MORTISE_SOAK"] !== undefined;
/** 8 children with 7 grandchildren each are 64. */
const WIDTH = SOAK ? 8 : 4;
const BELOW = SOAK ? 7 : 3;

let daemon: TestDaemon | undefined;
afterEach(async () => {
  await daemon?.stop();
  daemon = undefined;
});

/** Every leaf takes a few turns of the event loop; `peak` is the largest number of them at work at once. */
function tree(seen: { peak: number; active: number; ended: string[] }, hold?: Gate): Play {
  const step = () => new Promise<void>((resolve) => setImmediate(resolve));
  return ({ told, turn }) => {
    const names = (prefix: string, count: number) => Array.from({ length: count }, (_, index) => ({ task: `${prefix}${index}` }));
    if (told === "Go") return turn === 0 ? spawns("root", ...names("child-", WIDTH)) : says("done");
    if (/^child-\d+$/.test(told))
      return turn === 0 ? spawns(`of-${told}`, ...names(`${told}/leaf-`, BELOW)) : says(`sum of ${told}`);
    const enter = async () => {
      seen.active++;
      seen.peak = Math.max(seen.peak, seen.active);
      await step();
    };
    const leave = () => {
      seen.active--;
      seen.ended.push(told);
    };
    return [enter, step, ...(hold === undefined ? [] : [hold]), step, leave, ...says(`leaf ${told}`)];
  };
}

describe("many subagents", () => {
  it("stay within agent.maxConcurrency and give one result each", { timeout: 60_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 6 }), async (limit) => {
        const seen = { peak: 0, active: 0, ended: [] as string[] };
        const { daemon: d, provider } = await start(tree(seen), {
          files: { "config.yml": `agent:\n  maxConcurrency: ${limit}\n` },
        });
        daemon = d;
        await d.ask("set_subagent_subscription", { level: "progress" });
        const frames = await d.prompt("Go");
        const [result, ...more] = taskResults(frames);
        expect(more).toEqual([]);
        expect(result?.details.results.map(({ exitCode, output }) => [exitCode, output])).toEqual(
          Array.from({ length: WIDTH }, (_, index) => [0, `sum of child-${index}`]),
        );
        expect(new Set(seen.ended).size).toBe(WIDTH * BELOW);
        expect(seen.ended).toHaveLength(WIDTH * BELOW);
        expect(seen.peak).toBeLessThanOrEqual(limit);
        const life = frames
          .filter(({ type }) => type === "subagent_lifecycle")
          .map((frame) => `${frame["id"]} ${frame["status"]}`);
        expect(new Set(life).size).toBe(life.length);
        expect(life.filter((line) => line.endsWith("completed"))).toHaveLength(WIDTH * (BELOW + 1));
        expect(provider.refused).toEqual([]);
        await noneLeft(d);
        await d.stop();
        daemon = undefined;
      }),
      { numRuns: SOAK ? 6 : 2 },
    );
  });

  it("are all ended by an abort within 3 s", { timeout: 30_000 }, async () => {
    const seen = { peak: 0, active: 0, ended: [] as string[] };
    const { daemon: d, provider } = await start(tree(seen, new Gate()));
    daemon = d;
    await d.ask("set_subagent_subscription", { level: "progress" });
    const run = d.prompt("Go");
    const leaf = /^\w+(-\d+)?\./;
    let started = 0;
    for (let after = 0; started < Math.min(32, WIDTH * BELOW); ) {
      const frame = await d.next((each) => each.type === "subagent_lifecycle" && leaf.test(String(each["id"])), { after });
      after = d.frames.indexOf(frame) + 1;
      started++;
    }
    const began = performance.now();
    await d.ask("abort");
    const frames = await run;
    await noneLeft(d);
    expect(performance.now() - began).toBeLessThan(3000);
    const ended = d.frames.filter((frame) => frame.type === "subagent_lifecycle");
    const count = (status: string) => ended.filter((frame) => frame["status"] === status).length;
    expect(count("aborted")).toBe(count("started"));
    expect(taskResults(frames)).toHaveLength(1);
    const asked = provider.requests.length;
    expect((await d.ask("get_subagents"))["subagents"]).toEqual([]);
    expect(provider.requests).toHaveLength(asked);
  });
});
