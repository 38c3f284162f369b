// The rules of quiet and absence count on the clock of the process, which a test may move.
import { rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { folderWith, start, stopLoaders, toolFile } from "./_support.ts";

const realTimeout = setTimeout;
afterEach(async () => {
  vi.useRealTimers();
  await stopLoaders();
});

/** Waits on the real clock; the other one stands still. */
async function soon(what: string, check: () => boolean): Promise<void> {
  for (let tries = 0; !check(); tries++) {
    if (tries > 2000) throw new Error(`Waited in vain: ${what}`);
    await new Promise((resolve) => realTimeout(resolve, 5));
  }
}

test("an empty file is tried after 150 ms of quiet, and reported 150 ms later; an absent one is gone after 500 ms", async () => {
  const folder = await folderWith({ "x.ts": toolFile("t", "one") });
  const path = join(folder, "x.ts");
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  const { loader, host } = await start(folder, { watch: true });
  await vi.advanceTimersByTimeAsync(40);
  await loader.watching;
  // What the watch itself told when it was set.
  await vi.advanceTimersByTimeAsync(1000);
  const noticed = async (save: () => void) => {
    const timers = vi.getTimerCount();
    save();
    await soon("the event", () => vi.getTimerCount() > timers);
    // Events of the same save that come later count from the same moment: the clock stands.
    await new Promise((resolve) => realTimeout(resolve, 50));
  };
  const problem = () => loader.units()[0]?.error;
  await noticed(() => truncateSync(path));
  await vi.advanceTimersByTimeAsync(149);
  expect(problem()).toBeUndefined();
  await vi.advanceTimersByTimeAsync(3);
  await soon("the attempt", () => problem() !== undefined);
  expect(host.reports).toEqual([]);
  await vi.advanceTimersByTimeAsync(151);
  await soon("the report", () => host.reports.length === 1);

  writeFileSync(path, toolFile("t", "two"));
  await soon("the new version", () => loader.units()[0]?.generation !== 1 && problem() === undefined);
  await vi.advanceTimersByTimeAsync(1000);
  await noticed(() => rmSync(path));
  await vi.advanceTimersByTimeAsync(499);
  expect(host.registry.get("tool", "t")).toBeDefined();
  await vi.advanceTimersByTimeAsync(2);
  expect(host.registry.get("tool", "t")).toBeUndefined();
  expect(host.reports).toHaveLength(1);
});
