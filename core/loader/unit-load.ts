// Loads one unit at a time each: evaluate, set up, check, swap. A failure before the swap changes nothing, and no edit is lost: a
// reason to load that comes during a load makes it go round once more.
import { ExtensionError, errorMessage } from "../kernel/errors.ts";
import type { Activator, Ready } from "./activator.ts";
import { describe, type UnitSource } from "./discover.ts";
import { fingerprint, HeldFileError } from "./files.ts";
import { Generation, LOAD_LIMIT_MS, SETUP_LIMIT_MS } from "./generation.ts";
import type { LoaderHost, ReloadReport } from "./host.ts";
import type { LoaderOptions } from "./loader-options.ts";
import type { Turn } from "./start-batch.ts";
import type { Transformer } from "./transform.ts";
import type { Change, Snapshot, Unit } from "./unit.ts";
import { VirtualModules } from "./virtual-modules.ts";

/** Why a unit is loaded. After `watch` a failure is reported only when no further write follows. */
export type Cause = "start" | "watch" | "request" | "service";

type Attempt =
  | { outcome: "loaded" | "waiting" | "skipped" | "torn" | "held" }
  | { outcome: "failed"; error: unknown; phase: "load" | "setup" | "validate" };

/** A following write within this time makes a failure unfinished business (DESIGN §5 "Watching"). */
const ERROR_GRACE_MS = 150;
/** Files that change while they are read are read again this often in a row. */
const TORN_TRIES = 3;

export interface UnitLoadsParts {
  host: LoaderHost;
  options: LoaderOptions;
  transformer: Transformer;
  activator: Activator;
  /** What was written while it was read is looked at when the writer is done. */
  touch(unit: Unit): void;
  /** What a unit depends on may be another set of files now. */
  loaded(): void;
}

export class UnitLoads {
  readonly #parts: UnitLoadsParts;
  #virtual: Promise<VirtualModules> | undefined;

  constructor(parts: UnitLoadsParts) {
    this.#parts = parts;
  }

  /** Single-flight per unit. Never rejects. */
  request(unit: Unit, cause: Cause, turn?: Turn<Ready>): Promise<ReloadReport> {
    unit.markDirty();
    if (cause === "request" || cause === "service") unit.forced = true;
    unit.running ??= this.#run(unit, cause, turn).catch((error: unknown) => this.#gaveUp(unit, error));
    return unit.running;
  }

  /**
   * Sets up the compiled form of a built-in and hands it to `commit`, before this returns when its set-up is synchronous. A
   * failure is reported.
   */
  adopt(unit: Unit, commit: (ready: Ready) => void): Promise<void> | undefined {
    const generation = this.#generation(unit, new VirtualModules({}));
    const fail = (error: unknown) => {
      this.#failed(unit, generation, error);
      this.report(unit, error, generation.number);
    };
    try {
      generation.adopt(unit.builtin?.definitions() ?? []);
      const setUp = generation.setUp(undefined);
      if (setUp !== undefined) return setUp.then(() => commit({ unit, generation })).catch(fail);
      commit({ unit, generation });
    } catch (error) {
      fail(error);
    }
    return undefined;
  }

  report(unit: Unit, error: unknown, generation: number): void {
    const phase = phaseOf(error);
    const event = phase === "setup" ? "setup" : "load";
    this.#parts.host.reportError({ owner: unit.id, event, error, phase, generation });
  }

  /** A bug of ours: the unit is free for the next request all the same. */
  #gaveUp(unit: Unit, error: unknown): ReloadReport {
    unit.running = undefined;
    unit.error = error;
    const generation = unit.active?.number ?? 0;
    this.#parts.host.reportError({ owner: unit.id, event: "load", error, phase: "load", generation });
    return { id: unit.id, outcome: "failed", generation, error };
  }

  async #run(unit: Unit, cause: Cause, turn: Turn<Ready> | undefined): Promise<ReloadReport> {
    let torn = 0;
    for (let first = true; ; first = false) {
      const seen = unit.dirty;
      unit.forced = false;
      const generation = this.#generation(unit, await this.#virtualModules());
      const attempt = await this.#attempt(unit, generation, first ? turn : undefined, torn < TORN_TRIES);
      if (attempt.outcome === "torn") {
        torn++;
        continue;
      }
      if (attempt.outcome === "held") {
        if (unit.forced) continue;
        unit.running = undefined;
        this.#parts.loaded();
        return { id: unit.id, generation: unit.active?.number ?? 0, outcome: "skipped" };
      }
      let change = this.#lookAgain(unit);
      if (unit.dirty !== seen && mustGoOn(unit, change)) continue;
      if (attempt.outcome === "failed" && cause === "watch") {
        change = (await this.#writtenAfter(unit)) ?? change;
        if (mustGoOn(unit, change)) continue;
      }
      // From here to the end nothing is awaited: a later request starts a new run.
      unit.running = undefined;
      this.#parts.loaded();
      const report = { id: unit.id, generation: unit.active?.number ?? 0, timings: generation.timings };
      if (attempt.outcome !== "failed") return { ...report, outcome: attempt.outcome };
      // Of a save that is still going on, or a removal, the watch has the last word.
      const unfinished = cause === "watch" && (change === "empty" || (change === "absent" && !unit.goneTold));
      if (unit.wanted && !unfinished) this.report(unit, attempt.error, generation.number);
      return { ...report, outcome: "failed", error: attempt.error };
    }
  }

  /**
   * Waits until nothing was written for the grace time; gives what was written, compared with what was tried, else undefined.
   * Counted from now on: a write that came while the failure was made has been looked at, and was no other content.
   */
  async #writtenAfter(unit: Unit): Promise<Change | undefined> {
    while (await isWrittenAgain(unit, unit.dirty)) {
      const change = this.#lookAgain(unit);
      if (change !== "none" || unit.forced) return change;
    }
    return undefined;
  }

  #lookAgain(unit: Unit): Change {
    if (!unit.wanted) return "none";
    const change = unit.look();
    if (change !== "none") this.#parts.touch(unit);
    return change;
  }

  /** One load. Whatever fails is thrown away; the active generation is not touched before the swap. */
  async #attempt(unit: Unit, generation: Generation, turn: Turn<Ready> | undefined, mayRetry: boolean): Promise<Attempt> {
    const before = unit.snapshot();
    try {
      if (!unit.wanted) return await dropped(generation, "skipped");
      if (unit.active === undefined && unit.state !== "quarantined") unit.state = "evaluating";
      unit.held = this.#isHeld(unit);
      if (unit.held) return await dropped(generation, "held");
      if (unit.source === undefined) generation.adopt(unit.builtin?.definitions() ?? []);
      else await generation.evaluate(refreshed(unit, unit.source));
      await turn?.ready();
      if (!unit.wanted) return await dropped(generation, "skipped");
      if (mayRetry && isTorn(generation)) return await dropped(generation, "torn");
      const early = await this.#postponed(unit, generation, before);
      if (early !== undefined) return early;
      if (unit.active === undefined && unit.state !== "quarantined") unit.state = "staging";
      await generation.setUp(unit.active?.inheritance);
      const late = await this.#postponed(unit, generation, before);
      if (late !== undefined) return late;
      unit.remember(generation);
      this.#followLate(unit, generation);
      if (turn === undefined) this.#parts.activator.commit([{ unit, generation }]);
      else await turn.commit({ unit, generation });
      return { outcome: "loaded" };
    } catch (error) {
      if (error instanceof Error && error.cause instanceof HeldFileError) {
        unit.held = true;
        return await dropped(generation, "held");
      }
      this.#failed(unit, generation, error, before);
      // Sources of a built-in that do not load: its compiled form answers until they do.
      if (unit.active === undefined && unit.builtin !== undefined && unit.source !== undefined) {
        void this.adopt(unit, (ready) => this.#parts.activator.commit([ready]));
      }
      return { outcome: "failed", error, phase: phaseOf(error) };
    } finally {
      turn?.done();
    }
  }

  /** Services a generation requires and nobody provides. */
  missing(generation: Generation): string[] {
    const { registry } = this.#parts.host;
    return generation.requires.filter((name) => registry.get("service", name) === undefined);
  }

  /** Without what it requires it is not set up: a first version waits for it, a later one leaves the active one in place. */
  async #postponed(unit: Unit, generation: Generation, before: Snapshot): Promise<Attempt | undefined> {
    const missing = this.missing(generation);
    if (missing.length === 0) return undefined;
    const error = waitingFor(unit, missing);
    if (unit.active !== undefined) this.#failed(unit, generation, error, before);
    else {
      unit.remember(generation);
      unit.error = error;
      unit.timings = generation.timings;
      if (unit.state !== "quarantined") unit.state = "waiting";
      await generation.discard();
    }
    unit.waitsFor = missing;
    return unit.active === undefined ? { outcome: "waiting" } : { outcome: "failed", error, phase: "setup" };
  }

  /** What a unit reads while it runs is followed from then on, as what it read at its load. */
  #followLate(unit: Unit, generation: Generation): void {
    const { evaluation } = generation;
    if (evaluation === undefined) return;
    evaluation.onFile = () => {
      if (unit.active !== generation) return;
      unit.rememberMore(evaluation);
      this.#parts.loaded();
    };
  }

  /** True while a file that decides what the unit is may not be read. */
  #isHeld(unit: Unit): boolean {
    const { mayRead } = this.#parts.options;
    if (mayRead === undefined || unit.origin !== "project") return false;
    const deciding = [...unit.watched, ...(unit.source?.entries ?? []), ...(unit.source?.decidedBy ?? [])];
    return deciding.some((path) => !mayRead(path));
  }

  #generation(unit: Unit, virtualModules: VirtualModules): Generation {
    const { host, options, transformer } = this.#parts;
    const { adaptFactory, isolate, loadLimitMs = LOAD_LIMIT_MS, setupLimitMs = SETUP_LIMIT_MS } = options;
    const mayRead = unit.origin === "project" ? options.mayRead : undefined;
    const parts = { host, transformer, virtualModules, adaptFactory, isolate, loadLimitMs, setupLimitMs, mayRead };
    return new Generation(parts, unit.owner, unit.nextGeneration());
  }

  #virtualModules(): Promise<VirtualModules> {
    this.#virtual ??= this.#parts.options.virtualModules().then(
      (modules) => new VirtualModules(modules),
      (error: unknown) => {
        this.#virtual = undefined;
        this.#parts.host.log.error(`The modules handed to extensions are not available: ${errorMessage(error)}`);
        return new VirtualModules({});
      },
    );
    return this.#virtual;
  }

  #failed(unit: Unit, generation: Generation, error: unknown, before: Snapshot = new Map()): void {
    unit.remember(generation, before);
    unit.error = error;
    unit.waitsFor = [];
    if (unit.active === undefined && unit.state !== "quarantined" && unit.enabled) unit.state = "failed";
    unit.timings = generation.timings;
    void generation.discard();
  }
}

/** Why a unit is out of service while nobody provides what it requires. */
export function waitingFor(unit: Unit, services: readonly string[]): ExtensionError {
  const names = services.map((name) => `"${name}"`).join(", ");
  return new ExtensionError(unit.id, "setup", `It waits for ${names}: load an extension that provides what it requires`);
}

function phaseOf(error: unknown): "load" | "setup" | "validate" {
  const phase = ExtensionError.is(error) ? error.phase : "load";
  return phase === "setup" || phase === "validate" ? phase : "load";
}

async function dropped(generation: Generation, outcome: "skipped" | "torn" | "held"): Promise<Attempt> {
  await generation.discard();
  return { outcome };
}

/** What the unit is on disk now; what it was when it is not there. */
function refreshed(unit: Unit, source: UnitSource): UnitSource {
  const now = describe(source.path);
  if (now === undefined || now.id !== source.id) return source;
  unit.source = now;
  return now;
}

/** A request or another content than the one just tried; a mere touch is no reason. */
function mustGoOn(unit: Unit, change: Change): boolean {
  return unit.wanted && (unit.forced || change === "changed");
}

/** True when a file changed after it was read, so that the modules may be of two versions. */
function isTorn(generation: Generation): boolean {
  for (const [path, file] of generation.evaluation?.files ?? []) if (fingerprint(path) !== file.fingerprint) return true;
  return false;
}

/** Waits until nothing was written for the grace time; true when there is a further reason to load. */
async function isWrittenAgain(unit: Unit, seen: number): Promise<boolean> {
  const failedAt = performance.now();
  for (;;) {
    const left = ERROR_GRACE_MS - (performance.now() - Math.max(failedAt, unit.lastEventAt));
    if (left <= 0) return unit.dirty !== seen;
    if (await unit.becomesDirty(seen, left)) return true;
  }
}
