// The leak check of the test kit: reloads a unit many times and compares what the process and the daemon hold before and after.
import { ExtensionError } from "../kernel/errors.ts";
import type { Scope } from "../kernel/scope.ts";
import type { TestDaemon } from "../testing.ts";

export interface LeakOptions {
  /** How often the unit is loaded anew; 30 unless said otherwise. */
  reloads?: number;
  /**
   * Kept bytes a reload, checked when the process runs with `--expose-gc`; 64 KiB unless said otherwise. More than that is measured
   * once more, over as many reloads, and the smaller figure counts.
   */
  maxBytesPerReload?: number;
  /** Runs after every reload, to use what the new version offers. */
  use?: (daemon: TestDaemon, reload: number) => unknown;
}

/** What was held before and after; equal but for the heap when nothing leaks. */
export interface LeakReport {
  readonly reloads: number;
  /** Name of what is counted → counts before and after: contributions, effects, timers, handles by type, listeners. */
  readonly counts: Readonly<Record<string, readonly [before: number, after: number]>>;
  /** Old versions that are still there, by number. */
  readonly undisposed: readonly number[];
  /** Undefined without `--expose-gc`. */
  readonly bytesPerReload: number | undefined;
}

/** Loads before the first count: caches of the loader and of the unit fill with them. */
const WARM_UP = 3;
/** How long what ends behind a reload (a socket, a child) may take. */
const SETTLE_MS = 3_000;

/**
 * Loads a unit again and again. Old versions must be gone, and contributions, timers, handles, listeners and what the unit owns
 * must be as many as before.
 *
 * @throws {Error} that lists what grew, or why a reload failed.
 */
export async function checkLeaks(daemon: TestDaemon, unit: string, options: LeakOptions = {}): Promise<LeakReport> {
  const { reloads = 30, maxBytesPerReload = 64 * 1024, use } = options;
  const { loader } = daemon.daemon;
  const old: Scope[] = [];
  let current: Scope | undefined;
  const stop = loader.onActivated((activation) => {
    if (activation.previous !== undefined && old.at(-1) !== activation.previous) old.push(activation.previous);
    current = activation.scope;
  });
  const round = async (number: number) => {
    await daemon.reload(unit);
    await use?.(daemon, number);
  };
  try {
    // Watches are set up behind the start; they are not the unit's.
    await loader.watching;
    for (let n = 0; n < WARM_UP; n++) await round(n);
    await untilDisposed(old);
    const before = countsOf(daemon, current);
    old.splice(0);
    let done = WARM_UP;
    const again = async () => {
      for (const end = done + reloads; done < end; done++) await round(done);
      await untilDisposed(old);
    };
    const heap = await heapUsed();
    await again();
    const after = await settled(() => countsOf(daemon, current), before);
    const undisposed = old.filter((scope) => !isGone(scope)).map((scope) => scope.generation);
    old.splice(0);
    let bytesPerReload = await grownSince(heap, reloads);
    if ((bytesPerReload ?? 0) > maxBytesPerReload) {
      // A leak grows as much with every round; what the process did once (a library loaded, other tests) does not.
      const then = await heapUsed();
      await again();
      old.splice(0);
      bytesPerReload = Math.min(bytesPerReload ?? 0, (await grownSince(then, reloads)) ?? 0);
    }
    const report: LeakReport = { reloads, counts: pairs(before, after), undisposed, bytesPerReload };
    assertFlat(unit, report, maxBytesPerReload);
    return report;
  } finally {
    stop();
  }
}

type Counts = Map<string, number>;

function countsOf(daemon: TestDaemon, scope: Scope | undefined): Counts {
  const counts: Counts = new Map([
    ["contributions", daemon.daemon.kernel.registry.size],
    ["open host requests", daemon.daemon.kernel.requests.size],
    ["listeners on process", process.eventNames().reduce((sum, name) => sum + process.listenerCount(name), 0)],
    ["owned effects", scope?.effects.length ?? 0],
    ["leases", scope?.leases ?? 0],
  ]);
  for (const type of process.getActiveResourcesInfo()) {
    const key = `handles of type ${type}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return counts;
}

function pairs(before: Counts, after: Counts): LeakReport["counts"] {
  const names = [...new Set([...before.keys(), ...after.keys()])].sort();
  return Object.fromEntries(names.map((name) => [name, [before.get(name) ?? 0, after.get(name) ?? 0] as const]));
}

/** Counts until nothing is more than before; the last counts when that does not come. */
async function settled(count: () => Counts, before: Counts): Promise<Counts> {
  const until = performance.now() + SETTLE_MS;
  for (;;) {
    const now = count();
    const grew = [...now].some(([name, value]) => value > (before.get(name) ?? 0));
    if (!grew || performance.now() > until) return now;
    await pause(20);
  }
}

async function untilDisposed(scopes: readonly Scope[]): Promise<void> {
  const until = performance.now() + SETTLE_MS;
  while (!scopes.every(isGone) && performance.now() < until) await pause(5);
}

function isGone(scope: Scope): boolean {
  return scope.state === "disposed" && scope.leases === 0 && scope.effects.length === 0;
}

async function heapUsed(): Promise<number | undefined> {
  const { gc } = globalThis;
  if (gc === undefined) return undefined;
  for (let round = 0; round < 4; round++) {
    await gc();
    await new Promise((resolve) => setImmediate(resolve));
  }
  return process.memoryUsage().heapUsed;
}

async function grownSince(heap: number | undefined, reloads: number): Promise<number | undefined> {
  const now = await heapUsed();
  return heap === undefined || now === undefined ? undefined : Math.round((now - heap) / reloads);
}

function assertFlat(unit: string, report: LeakReport, maxBytes: number): void {
  const found = Object.entries(report.counts)
    .filter(([, [before, after]]) => after > before)
    .map(([name, [before, after]]) => `${name}: ${before} before, ${after} after`);
  if (report.undisposed.length > 0) found.push(`versions that did not end: ${report.undisposed.join(", ")}`);
  if ((report.bytesPerReload ?? 0) > maxBytes) found.push(`${report.bytesPerReload} bytes kept a reload, at most ${maxBytes}`);
  if (found.length === 0) return;
  throw new ExtensionError(unit, "dispose", `"${unit}" leaks over ${report.reloads} reloads: ${found.join("; ")}`);
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
