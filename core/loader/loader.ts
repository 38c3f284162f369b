// Keeps the registry equal to the units on disk: load, set up, check, one synchronous swap, retire the old generation. A failure
// before the swap changes nothing, and no edit is lost: a reason to load that comes during a load makes it go round once more.
import { join } from "node:path";
import { ExtensionError, errorMessage } from "../kernel/errors.ts";
import { keyOf, type RegistryDiff } from "../kernel/registry.ts";
import type { Origin } from "../kernel/scope.ts";
import { type Activation, Activator, type Ready } from "./activator.ts";
import { describe, discover, type UnitSource } from "./discover.ts";
import { HeldFileError } from "./evaluate.ts";
import { fingerprint, realPath } from "./files.ts";
import { Generation, type GenerationParts, LOAD_LIMIT_MS, SETUP_LIMIT_MS } from "./generation.ts";
import type { AdaptFactory, BuiltinUnit, LoaderHost, ReloadReport, Root, UnitInfo } from "./host.ts";
import { StartBatch, type Turn } from "./start-batch.ts";
import { Transformer } from "./transform.ts";
import { type Change, Unit } from "./unit.ts";
import { inOrder, UnitOrder } from "./unit-order.ts";
import { UnitWatch } from "./unit-watch.ts";
import { VirtualModules } from "./virtual-modules.ts";

export interface LoaderOptions {
  builtins: readonly BuiltinUnit[];
  /** In order; within a rank the units of an earlier root answer first. */
  roots: readonly Root[];
  /** Specifier → namespace, or a function that gives it at the first import. Asked once, before the first evaluation. */
  virtualModules(): Promise<Record<string, unknown>>;
  adaptFactory?: AdaptFactory | undefined;
  /** Decides whether a unit runs in a process of its own. */
  isolate?: GenerationParts["isolate"];
  /** For transformed modules; `$MORTISE_HOME/cache`. None is kept when absent. */
  cacheDir?: string | undefined;
  /** The transform worker, when it does not lie beside this module (in a bundle). */
  workerUrl?: URL | undefined;
  /** Reads built-ins from their sources and watches them. */
  dev?: boolean | undefined;
  /** What relative `sources` of built-ins are relative to. */
  sourceRoot?: string | undefined;
  watch?: boolean | undefined;
  /** True for hook points whose handlers must block when their unit is quarantined (DESIGN §5 "Hooks"). */
  isGate?: ((hookPoint: string) => boolean) | undefined;
  /** False for a file of a project's unit that must not be read now; its unit stays as it is until `retryHeld`. */
  mayRead?: ((realPath: string) => boolean) | undefined;
  /** How long `start` waits for a slow unit before the others go live without it. */
  patienceMs?: number | undefined;
  loadLimitMs?: number | undefined;
  setupLimitMs?: number | undefined;
  /** How long calls other than runs may hold an old generation. */
  drainLimitMs?: number | undefined;
}

/** Why a unit is loaded. After `watch` a failure is reported only when no further write follows. */
type Cause = "start" | "watch" | "request" | "service";

type Attempt =
  | { outcome: "loaded" | "skipped" | "torn" | "held" }
  | { outcome: "failed"; error: unknown; phase: "load" | "setup" | "validate" };

/** A following write within this time makes a failure unfinished business (DESIGN §5 "Watching"). */
const ERROR_GRACE_MS = 150;
/** Files that change while they are read are read again this often in a row. */
const TORN_TRIES = 3;
const PATIENCE_MS = 5_000;
/** From the end of the start to the first watch. */
const FOLLOW_AFTER_MS = 40;
/** More re-activations by services within a second are a circle. */
const REACTIVATIONS = 5;

export class Loader {
  readonly #host: LoaderHost;
  readonly #options: LoaderOptions;
  readonly #transformer: Transformer;
  readonly #activator: Activator;
  readonly #units = new Map<string, Unit>();
  readonly #order = new UnitOrder();
  readonly #watch: UnitWatch | undefined;
  #roots: Root[];
  #virtual: Promise<VirtualModules> | undefined;
  #unsubscribe: (() => void) | undefined;
  #stopped = false;
  #cancelFollowing: (() => void) | undefined;
  /** Resolves when built-ins that set themselves up asynchronously are live as well; those read from sources come with `start`. */
  builtinsLive: Promise<void> = Promise.resolve();
  /** Resolves when edits are followed. */
  watching: Promise<void> = Promise.resolve();

  constructor(host: LoaderHost, options: LoaderOptions) {
    this.#host = host;
    this.#options = options;
    this.#roots = [...options.roots];
    this.#transformer = new Transformer({ cacheDir: options.cacheDir, workerUrl: options.workerUrl });
    this.#activator = new Activator(host, options);
    if (!options.watch) return;
    this.#watch = new UnitWatch({
      log: host.log,
      units: () => [...this.#units.values()],
      roots: () => this.#roots,
      rescan: (root) => this.#rescan(root),
      changed: (unit) => void this.#request(unit, "watch"),
      gone: (unit) => this.#gone(unit),
    });
  }

  /**
   * Brings everything to life. Built-ins are live, in one swap, before the first await; the rest is evaluated in parallel, set up
   * in discovery order and goes live together. A unit slower than the patience follows on its own. Never rejects for a unit.
   */
  async start(): Promise<void> {
    this.#unsubscribe = this.#host.registry.onChange((diff) => this.#onRegistryChange(diff));
    const pending = this.#startBuiltins();
    this.builtinsLive = Promise.all(pending).then(() => {});
    for (const root of this.#roots) this.#addUnits(root);
    const batch = new StartBatch<Ready>(this.#options.patienceMs ?? PATIENCE_MS, (ready) => this.#activator.commit(ready));
    for (const unit of inOrder(this.#units.values())) {
      if (unit.source !== undefined) void this.#request(unit, "start", batch.turn());
    }
    await Promise.all([...pending, batch.run()]);
    this.watching = this.#followSoon();
  }

  /**
   * Setting up watches takes longer than loading, so that what waits for the start is answered first; a save in between is seen
   * when they are set. Whoever needs to know that edits are followed waits for `watching`.
   */
  #followSoon(): Promise<void> {
    const watch = this.#watch;
    if (watch === undefined || this.#stopped) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(watch.start()), FOLLOW_AFTER_MS);
      this.#cancelFollowing = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** Loads a unit, or every unit, anew. Resolves when the new generations are live or have failed, not when old ones are drained. */
  async reload(unitId?: string): Promise<ReloadReport[]> {
    if (unitId !== undefined) return [await this.#request(this.#unit(unitId), "request")];
    for (const root of this.#roots) this.#rescan(root);
    const enabled = inOrder(this.#units.values()).filter((unit) => unit.enabled);
    return Promise.all(enabled.map((unit) => this.#request(unit, "request")));
  }

  /** Resolves when no load is running. */
  async settled(): Promise<void> {
    const awaited = new Set<Promise<ReloadReport>>();
    for (;;) {
      // One that was awaited is over, whatever still refers to it: each round waits for something new.
      const running = [...this.#units.values()].flatMap((unit) => unit.running ?? []).filter((one) => !awaited.has(one));
      if (running.length === 0) return;
      for (const one of running) awaited.add(one);
      await Promise.allSettled(running);
    }
  }

  /** Every unit, lowest rank first. */
  units(): UnitInfo[] {
    return inOrder(this.#units.values()).map((unit) => this.#info(unit));
  }

  /** Takes a unit out of service or brings it back. @throws {Error} for an unknown id. */
  async setEnabled(unitId: string, enabled: boolean): Promise<void> {
    const unit = this.#unit(unitId);
    if (unit.enabled === enabled) return;
    unit.enabled = enabled;
    if (enabled) {
      await unit.running;
      await this.#request(unit, "request");
      return;
    }
    unit.markDirty();
    this.#watch?.drop(unit);
    this.#activator.withdraw([unit], "disabled");
    await this.#watch?.refresh();
  }

  /** Loads the units that wait because of a file they may not read. */
  async retryHeld(): Promise<ReloadReport[]> {
    const held = [...this.#units.values()].filter((unit) => unit.held);
    return Promise.all(held.map((unit) => this.#request(unit, "request")));
  }

  /** Whether a path is, or decides, a part of a unit of this origin. */
  concerns(path: string, origin: Origin): boolean {
    return [...this.#units.values()].some((unit) => unit.origin === origin && unit.concerns(path));
  }

  /** Adds units, e.g. when a project is trusted later. Resolves when they are live or have failed. */
  async addRoot(root: Root): Promise<ReloadReport[]> {
    if (this.#roots.some((known) => known.path === root.path && known.kind === root.kind)) return [];
    this.#roots.push(root);
    const reports = await Promise.all(this.#addUnits(root).map((unit) => this.#request(unit, "request")));
    await this.#watch?.refresh();
    return reports;
  }

  /** Removes a root and, in one swap, its units. */
  async removeRoot(path: string): Promise<void> {
    const gone = new Set(this.#roots.filter((root) => root.path === path));
    this.#roots = this.#roots.filter((root) => !gone.has(root));
    this.#remove([...this.#units.values()].filter((unit) => unit.root !== undefined && gone.has(unit.root)));
    await this.#watch?.refresh();
  }

  /** Takes a failing unit out of service until its files change or it is reloaded; its gates block meanwhile. */
  quarantine(unitId: string, reason: string): void {
    const unit = this.#units.get(unitId);
    if (unit?.active === undefined) return;
    const generation = unit.active.number;
    this.#activator.quarantine(unit, reason);
    unit.error = new ExtensionError(unit.id, "async", `Taken out of service because ${reason}; edit or reload it to try again`);
    this.#host.reportError({ owner: unit.id, event: "quarantine", error: unit.error, phase: "async", generation });
  }

  /** Told of every generation that goes live, right after its swap. Returns the unsubscription. */
  onActivated(listener: (activation: Activation) => void): () => void {
    return this.#activator.onActivated(listener);
  }

  /** Directories watched now; for leak checks. */
  get watchedDirectories(): number {
    return this.#watch?.handles ?? 0;
  }

  /** Tells every live unit that the daemon ends, all at once; the limit is shared. */
  async announceShutdown(): Promise<void> {
    this.#stopped = true;
    // What is still loading does not go live any more: it would have to be told on its own.
    for (const unit of this.#units.values()) if (unit.active === undefined) unit.removed = true;
    await Promise.all([...this.#units.values()].map((unit) => unit.active?.retire("shutdown")));
  }

  /** Stops watching and disposes every generation, the last in order first. Each undo is bounded. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#unsubscribe?.();
    this.#cancelFollowing?.();
    await this.#watch?.stop();
    for (const unit of inOrder(this.#units.values()).reverse()) {
      unit.removed = true;
      unit.markDirty();
      await this.#activator.end(unit);
    }
    await this.#transformer.stop();
  }

  // ── Units ────────────────────────────────────────────────────────────────────────────────────────────────────────────────

  #unit(id: string): Unit {
    const unit = this.#units.get(id);
    if (unit !== undefined) return unit;
    throw new Error(`No extension "${id}" is known; the known ones are ${[...this.#units.keys()].join(", ") || "none"}`);
  }

  #startBuiltins(): Promise<unknown>[] {
    const ready: Ready[] = [];
    const pending: Promise<unknown>[] = [];
    for (const [order, builtin] of this.#options.builtins.entries()) {
      const source = this.#options.dev ? this.#builtinSource(builtin) : undefined;
      const unit = new Unit({ id: builtin.id, origin: "builtin", order, builtin, source });
      this.#units.set(unit.id, unit);
      if (source !== undefined) continue;
      const generation = this.#generation(unit, new VirtualModules({}));
      try {
        generation.adopt(builtin.definitions());
        const setUp = generation.setUp(undefined);
        if (setUp === undefined) ready.push({ unit, generation });
        else
          pending.push(setUp.then(() => this.#activator.commit([{ unit, generation }])).catch(this.#reporter(unit, generation)));
      } catch (error) {
        this.#reporter(unit, generation)(error);
      }
    }
    this.#activator.commit(ready);
    return pending;
  }

  #reporter(unit: Unit, generation: Generation): (error: unknown) => void {
    return (error) => {
      this.#failed(unit, generation, error);
      this.#report(unit, error, generation.number);
    };
  }

  #builtinSource(builtin: BuiltinUnit): UnitSource | undefined {
    return builtin.sources === undefined ? undefined : describe(this.#absolute(builtin.sources));
  }

  #absolute(path: string): string {
    return path.startsWith("/") ? path : join(this.#options.sourceRoot ?? process.cwd(), path);
  }

  /** Creates the units of a root that are not known yet. */
  #addUnits(root: Root): Unit[] {
    const builtin = new Set(
      this.#options.builtins.flatMap(({ sources }) => (sources ? (realPath(this.#absolute(sources)) ?? []) : [])),
    );
    const added: Unit[] = [];
    for (const source of discover(root)) {
      if (this.#units.has(source.id) || builtin.has(source.id)) continue;
      const unit = new Unit({ id: source.id, origin: root.origin, order: this.#order.place(root, source.id), root, source });
      this.#units.set(unit.id, unit);
      added.push(unit);
    }
    return added;
  }

  /** Compares a root with what is known of it: new units load, re-pointed ones move, absent ones are looked after. */
  #rescan(root: Root): void {
    if (this.#stopped) return;
    const found = discover(root);
    for (const unit of [...this.#units.values()]) {
      if (unit.root !== root || found.some((source) => source.id === unit.id)) continue;
      const moved = found.find((source) => source.path === unit.source?.path && !this.#units.has(source.id));
      if (moved !== undefined) this.#move(unit, moved);
      else this.#watch?.touch(unit);
    }
    for (const unit of this.#addUnits(root)) void this.#request(unit, "watch");
  }

  /** A link that was pointed elsewhere stays the same unit, so that one swap replaces the old code by the new. */
  #move(unit: Unit, source: UnitSource): void {
    this.#units.delete(unit.id);
    unit.id = source.id;
    unit.source = source;
    this.#units.set(unit.id, unit);
    void this.#request(unit, "watch");
  }

  /** Absent for longer than a save takes: the whole unit, or one of its entries. */
  #gone(unit: Unit): void {
    const now = unit.source && describe(unit.source.path);
    if (now === undefined || now.id !== unit.source?.id) this.#remove([unit]);
    else void this.#request(unit, "watch");
  }

  #remove(units: readonly Unit[]): void {
    for (const unit of units) {
      unit.removed = true;
      unit.markDirty();
      this.#units.delete(unit.id);
      this.#order.forget(unit.id);
      this.#watch?.drop(unit);
    }
    this.#activator.withdraw(units, "disposed");
    void this.#watch?.refresh();
  }

  #info(unit: Unit): UnitInfo {
    const { hides, hiddenBy } = this.#activator.shadows(unit);
    const entries = unit.active === undefined ? [] : this.#host.registry.ownedBy(unit.active.scope);
    return {
      id: unit.id,
      path: unit.source?.path ?? unit.builtin?.name ?? unit.id,
      origin: unit.origin,
      state: unit.state,
      generation: unit.active?.number ?? 0,
      draining: unit.draining?.number,
      held: unit.held,
      files: unit.files,
      timings: unit.timings,
      error: unit.error === undefined ? undefined : errorMessage(unit.error),
      contributes: entries.map((entry) => keyOf(entry.kind, entry.name)),
      shadows: hides,
      shadowedBy: hiddenBy,
    };
  }

  // ── Loading ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Single-flight per unit. */
  #request(unit: Unit, cause: Cause, turn?: Turn<Ready>): Promise<ReloadReport> {
    unit.markDirty();
    if (cause === "request" || cause === "service") unit.forced = true;
    unit.running ??= this.#run(unit, cause, turn).catch((error: unknown) => this.#gaveUp(unit, error));
    return unit.running;
  }

  /** A bug of ours: the unit is free for the next request all the same. */
  #gaveUp(unit: Unit, error: unknown): ReloadReport {
    unit.running = undefined;
    unit.error = error;
    const generation = unit.active?.number ?? 0;
    this.#host.reportError({ owner: unit.id, event: "load", error, phase: "load", generation });
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
        void this.#watch?.refresh();
        return { id: unit.id, generation: unit.active?.number ?? 0, outcome: "skipped" };
      }
      let change = this.#lookAgain(unit);
      if (unit.dirty !== seen && mustGoOn(unit, change)) continue;
      if (attempt.outcome === "failed" && cause === "watch" && (await isWrittenAgain(unit, seen))) {
        change = this.#lookAgain(unit);
        if (mustGoOn(unit, change)) continue;
      }
      // From here to the end nothing is awaited: a later request starts a new run.
      unit.running = undefined;
      void this.#watch?.refresh();
      const report = { id: unit.id, generation: unit.active?.number ?? 0, timings: generation.timings };
      if (attempt.outcome !== "failed") return { ...report, outcome: attempt.outcome };
      // Of a save that is still going on, or a removal, the watch has the last word.
      const unfinished = cause === "watch" && (change === "absent" || change === "empty");
      if (isAlive(unit) && !unfinished) this.#report(unit, attempt.error, generation.number);
      return { ...report, outcome: "failed", error: attempt.error };
    }
  }

  /** What was written while it was read is tried when the writer is done. */
  #lookAgain(unit: Unit): Change {
    if (!isAlive(unit)) return "none";
    const change = unit.look();
    if (change !== "none") this.#watch?.touch(unit);
    return change;
  }

  /** One load. Whatever fails is thrown away; the active generation is not touched before the swap. */
  async #attempt(unit: Unit, generation: Generation, turn: Turn<Ready> | undefined, mayRetry: boolean): Promise<Attempt> {
    try {
      if (!isAlive(unit)) return await this.#skipped(generation);
      if (unit.active === undefined && unit.state !== "quarantined") unit.state = "evaluating";
      unit.held = this.#isHeld(unit);
      if (unit.held) {
        await generation.discard();
        return { outcome: "held" };
      }
      if (unit.source === undefined) generation.adopt(unit.builtin?.definitions() ?? []);
      else await generation.evaluate(this.#refreshed(unit, unit.source));
      await turn?.ready();
      if (!isAlive(unit)) return await this.#skipped(generation);
      if (mayRetry && isTorn(generation)) {
        await generation.discard();
        return { outcome: "torn" };
      }
      if (unit.active === undefined && unit.state !== "quarantined") unit.state = "staging";
      await generation.setUp(unit.active?.inheritance);
      unit.remember(generation, "loaded");
      if (turn === undefined) this.#activator.commit([{ unit, generation }]);
      else await turn.commit({ unit, generation });
      return { outcome: "loaded" };
    } catch (error) {
      if (error instanceof Error && error.cause instanceof HeldFileError) {
        unit.held = true;
        await generation.discard();
        return { outcome: "held" };
      }
      this.#failed(unit, generation, error);
      if (unit.active === undefined && unit.builtin !== undefined && unit.source !== undefined) this.#fallBack(unit);
      return { outcome: "failed", error, phase: phaseOf(error) };
    } finally {
      turn?.done();
    }
  }

  async #skipped(generation: Generation): Promise<Attempt> {
    await generation.discard();
    return { outcome: "skipped" };
  }

  /** True while a file that decides what the unit is may not be read. */
  #isHeld(unit: Unit): boolean {
    const { mayRead } = this.#options;
    if (mayRead === undefined || unit.origin !== "project") return false;
    const deciding = [...unit.watched, ...(unit.source?.entries ?? []), ...(unit.source?.decidedBy ?? [])];
    return deciding.some((path) => !mayRead(path));
  }

  /** Sources of a built-in that do not load: its compiled form answers until they do. */
  #fallBack(unit: Unit): void {
    const generation = this.#generation(unit, new VirtualModules({}));
    try {
      generation.adopt(unit.builtin?.definitions() ?? []);
      const setUp = generation.setUp(undefined);
      const commit = () => this.#activator.commit([{ unit, generation }]);
      if (setUp === undefined) commit();
      else void setUp.then(commit).catch(this.#reporter(unit, generation));
    } catch (error) {
      this.#reporter(unit, generation)(error);
    }
  }

  #refreshed(unit: Unit, source: UnitSource): UnitSource {
    const now = describe(source.path);
    if (now !== undefined && now.id === source.id) unit.source = now;
    return unit.source ?? source;
  }

  #generation(unit: Unit, virtualModules: VirtualModules): Generation {
    const { adaptFactory, isolate, loadLimitMs = LOAD_LIMIT_MS, setupLimitMs = SETUP_LIMIT_MS } = this.#options;
    const mayRead = unit.origin === "project" ? this.#options.mayRead : undefined;
    const parts = {
      host: this.#host,
      transformer: this.#transformer,
      virtualModules,
      adaptFactory,
      isolate,
      loadLimitMs,
      setupLimitMs,
      mayRead,
    };
    return new Generation(parts, unit.owner, unit.nextGeneration());
  }

  #virtualModules(): Promise<VirtualModules> {
    if (this.#virtual === undefined) {
      this.#virtual = this.#options.virtualModules().then(
        (modules) => new VirtualModules(modules),
        (error: unknown) => {
          this.#virtual = undefined;
          this.#host.log.error(`The modules handed to extensions are not available: ${errorMessage(error)}`);
          return new VirtualModules({});
        },
      );
    }
    return this.#virtual;
  }

  #failed(unit: Unit, generation: Generation, error: unknown): void {
    unit.remember(generation, "failed");
    unit.error = error;
    if (unit.active === undefined && unit.state !== "quarantined" && unit.enabled) unit.state = "failed";
    unit.timings = generation.timings;
    void generation.discard();
  }

  #report(unit: Unit, error: unknown, generation: number): void {
    const phase = phaseOf(error);
    const event = phase === "setup" ? "setup" : "load";
    this.#host.reportError({ owner: unit.id, event, error, phase, generation });
  }

  /** Units that require a service are activated again when its owner changes. */
  #onRegistryChange(diff: RegistryDiff): void {
    if (!diff.touches("service")) return;
    for (const unit of [...this.#units.values()]) {
      if (unit.active === undefined || this.#activator.isCommitting(unit)) continue;
      const changed = unit.active.requires.find((name) => diff.touches("service", name));
      if (changed === undefined || this.#host.registry.get("service", changed) === undefined) continue;
      if (this.#mayReactivate(unit, changed)) void this.#request(unit, "service");
    }
  }

  #mayReactivate(unit: Unit, service: string): boolean {
    const now = performance.now();
    unit.reactivations = [...unit.reactivations.filter((at) => now - at < 1000), now];
    if (unit.reactivations.length <= REACTIVATIONS) return true;
    const error = new ExtensionError(
      unit.id,
      "setup",
      `"${unit.id}" and the provider of "${service}" activate each other again and again`,
    );
    this.#report(unit, error, unit.active?.number ?? 0);
    return false;
  }
}

function phaseOf(error: unknown): "load" | "setup" | "validate" {
  const phase = ExtensionError.is(error) ? error.phase : "load";
  return phase === "setup" || phase === "validate" ? phase : "load";
}

function isAlive(unit: Unit): boolean {
  return !unit.removed && unit.enabled;
}

/** A request or another content than the one just tried; a mere touch is no reason. */
function mustGoOn(unit: Unit, change: Change): boolean {
  return isAlive(unit) && (unit.forced || change === "changed");
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
    if (await becameDirty(unit, seen, left)) return true;
  }
}

function becameDirty(unit: Unit, seen: number, withinMs: number): Promise<boolean> {
  if (unit.dirty !== seen) return Promise.resolve(true);
  return new Promise((resolve) => {
    const settle = (dirty: boolean) => {
      clearTimeout(timer);
      unit.onDirty.delete(wake);
      resolve(dirty);
    };
    const wake = () => settle(true);
    const timer = setTimeout(() => settle(false), withinMs);
    unit.onDirty.add(wake);
  });
}
