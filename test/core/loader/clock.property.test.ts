// extensions.md §4.9: the 12 invariants over random sequences of operations, on a clock that only the test moves, with the limits of
// DESIGN §5 and §9 as they are. After every step the loader and the kernel are compared with an oracle (`_clock.ts`); what is
// compared stands in `_clock-world.ts`, by invariant. What needs events of a file system is in lifecycle.property.test.ts and
// test/reload/invariants.property.test.ts.
import fc from "fast-check";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { Broken } from "./_clock.ts";
import { settle, TOOLS, World } from "./_clock-world.ts";

const soak = process.env["MORTISE_SOAK"] !== undefined;
/** DESIGN §9 "Limits": load and set-up. */
const LOAD_MS = 10_000;

type Step =
  | { do: "write"; name: string; tools: string[]; gate: boolean; faulty?: number | undefined }
  | { do: "break"; name: string; broken: Exclude<Broken, "slow load" | "slow setup"> }
  | { do: "slow"; name: string; broken: "slow load" | "slow setup"; mended: boolean }
  | { do: "storm"; name: string; gaps: number[] }
  | { do: "remove" | "disable" | "enable" | "quarantine" | "reload" | "call"; name: string }
  | { do: "hook"; name: string; how: "observe" | "decide" | "ask" }
  | { do: "run"; tool: string; asks: boolean }
  | { do: "end"; pick: number }
  | { do: "three"; name: string; asks: boolean }
  | { do: "reload all" }
  | { do: "pass"; ms: number };

const name = fc.constantFrom("a", "b", "c");
const unit = fc.constantFrom("a", "b", "c", "d");
const tools = fc.uniqueArray(fc.constantFrom(...TOOLS), { minLength: 1 });
const just = <const T>(value: T) => fc.constant(value);
const faulty = fc.constantFrom(undefined, undefined, undefined, 700, 2000);
const brokenWays = fc.constantFrom("syntax", "throw", "empty", "twice", "setup") satisfies fc.Arbitrary<Broken>;
const ms = fc.constantFrom(1, 149, 1_000, 5_000, 9_999, 10_000, 29_999, 30_000, 31_000, 300_000);

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: just("write"), name, tools, gate: fc.boolean(), faulty }) },
  { weight: 2, arbitrary: fc.record({ do: just("break"), name, broken: brokenWays as fc.Arbitrary<"syntax"> }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: just("slow"),
      name,
      broken: fc.constantFrom("slow load" as const, "slow setup" as const),
      mended: fc.boolean(),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: just("storm"), name, gaps: fc.array(fc.nat(6), { minLength: 2, maxLength: 5 }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constantFrom("remove" as const, "disable" as const, "enable" as const), name: unit }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constantFrom("quarantine" as const, "reload" as const, "call" as const), name: unit }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: just("hook"),
      name: unit,
      how: fc.constantFrom("observe" as const, "decide" as const, "ask" as const),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: just("run"), tool: fc.constantFrom(...TOOLS), asks: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ do: just("end"), pick: fc.nat(9) }) },
  { weight: 2, arbitrary: fc.record({ do: just("three"), name, asks: fc.boolean() }) },
  { weight: 1, arbitrary: just({ do: "reload all" } as const) },
  { weight: 5, arbitrary: fc.record({ do: just("pass"), ms }) },
);

/** A unit that is off is written and read when it is on again. */
const isOff = (world: World, name: string) => world.life(name)?.on === false;

async function write(world: World, one: Extract<Step, { do: "write" }>): Promise<void> {
  const life = world.life(one.name);
  const before = life === undefined ? await world.verdict() : undefined;
  const version = await world.put(one.name, one);
  await world.load(one.name);
  if (!isOff(world, one.name)) expect(world.life(one.name)?.active?.shape.version, "the last content answers").toBe(version);
  // 12: what was blocked before a unit came in is blocked with it.
  if (before?.block) expect((await world.verdict())?.block).toBe(true);
}

/** 5: whatever fails, in whatever way and time, leaves what was there. */
async function unchanged(world: World, run: () => Promise<void>): Promise<void> {
  const { version } = world.kernel.registry;
  const before = world.snapshot();
  const bytes = world.toolBytes();
  await run();
  await settle();
  expect(world.kernel.registry.version).toBe(version);
  const after = world.snapshot();
  expect(after.length === before.length && after.every((entry, index) => entry === before[index])).toBe(true);
  expect(world.toolBytes()).toBe(bytes);
}

/** A load that hangs is given up after its limit, not before; what was written meanwhile is not lost. */
async function slow(world: World, one: Extract<Step, { do: "slow" }>): Promise<void> {
  const { bench } = world.oracle;
  if (isOff(world, one.name)) return;
  await world.put(one.name, { broken: one.broken, tools: ["t"], gate: false });
  const hanging = bench.hanging();
  let done = false;
  const load = world.load(one.name).then(() => {
    done = true;
  });
  await hanging;
  const number = world.life(one.name)?.number;
  await world.advance(LOAD_MS - 1);
  expect([done, world.life(one.name)?.number]).toEqual([false, number]);
  await world.check(1);
  const mended = one.mended ? await world.put(one.name, { tools: ["t", "u"], gate: false }) : undefined;
  const again = one.mended ? world.load(one.name) : undefined;
  await world.advance(1);
  await Promise.all([load, again]);
  if (mended !== undefined) expect(world.life(one.name)?.active?.shape.version).toBe(mended);
  // Whoever loads it next does not hang.
  else await world.put(one.name, { broken: "throw", tools: ["t"], gate: false });
  // Too late.
  await unchanged(world, async () => bench.unhang());
}

/** 8: whatever the loads that run meanwhile see, the last content wins; 10: the model is told the same. */
async function storm(world: World, one: Extract<Step, { do: "storm" }>): Promise<void> {
  const active = world.life(one.name)?.active?.shape;
  const shape = { tools: [...(active?.tools ?? ["t"])], gate: active?.gate ?? false };
  const bytes = world.toolBytes();
  const loads: Promise<unknown>[] = [];
  let version = "";
  for (const gap of one.gaps) {
    version = await world.put(one.name, shape);
    loads.push(world.load(one.name));
    for (let i = 0; i < gap; i++) await new Promise((resolve) => setImmediate(resolve));
  }
  await Promise.all(loads);
  if (!isOff(world, one.name)) expect(world.life(one.name)?.active?.shape.version).toBe(version);
  if (active !== undefined) expect(world.toolBytes()).toBe(bytes);
}

/** Three generations with calls at work on each: the middle one goes at once, what it asked is withdrawn. */
async function three(world: World, { name, asks }: Extract<Step, { do: "three" }>): Promise<void> {
  for (let generation = 1; generation <= 3; generation++) {
    await write(world, { do: "write", name, tools: ["t", "u"], gate: true });
    world.beginRun("t", asks);
    world.beginHook(name, asks ? "ask" : "observe");
    world.beginCall(name);
    await settle();
    await world.check();
  }
}

async function reload(world: World, name: string): Promise<void> {
  const life = world.life(name);
  if (life === undefined) return;
  await world.load(name);
}

async function apply(world: World, one: Step): Promise<void> {
  switch (one.do) {
    case "write":
      return write(world, one);
    case "break":
      await world.put(one.name, { broken: one.broken, tools: ["t"], gate: false });
      return unchanged(world, async () => void (await world.load(one.name)));
    case "slow":
      return slow(world, one);
    case "storm":
      return storm(world, one);
    case "remove":
      return world.remove(one.name);
    case "disable":
    case "enable":
      return world.setEnabled(one.name, one.do === "enable");
    case "quarantine":
      return world.quarantine(one.name);
    case "reload":
      return reload(world, one.name);
    case "three":
      return three(world, one);
    case "reload all":
      return void (await world.loader.reload());
    case "call":
      return world.beginCall(one.name);
    case "hook":
      return world.beginHook(one.name, one.how);
    case "run":
      return world.beginRun(one.tool, one.asks);
    case "end":
      return world.end(one.pick);
    case "pass":
      return world.advance(one.ms);
  }
}

const realTimeout = globalThis.setTimeout;
const realClear = globalThis.clearTimeout;

/** What waits for a clock that stands still would wait for ever. */
async function inTime(one: Step, run: () => Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_resolve, reject) => {
    timer = realTimeout(() => reject(new Error(`No end of ${JSON.stringify(one)}`)), 20_000);
  });
  await Promise.race([run(), limit]).finally(() => realClear(timer));
}

let world: World;
beforeAll(async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "performance", "Date"] });
  world = await World.start();
});
afterAll(async () => {
  await world.loader.stop();
  vi.useRealTimers();
});

test("the 12 invariants hold for any order of operations and any passing of time", { timeout: 900_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 30 }), async (steps) => {
      for (const one of steps) {
        await inTime(one, async () => {
          await apply(world, one);
          await settle();
          await world.check();
        });
      }
      await world.clear();
    }),
    { numRuns: soak ? 600 : 20, endOnFailure: true },
  );
});
