// Keeps the registry equal to the units on disk: which units there are, when each is loaded, and in what order they go. How one
// is loaded stands in `unit-load.ts`, the swap in `activator.ts`.
import { join } from "node:path";
import { ExtensionError } from "../kernel/errors.ts";
import type { RegistryDiff } from "../kernel/registry.ts";
import type { Origin } from "../kernel/scope.ts";
import { type Activation, Activator, type Ready } from "./activator.ts";
import { describe, discover, type UnitSource } from "./discover.ts";
import { realPath } from "./files.ts";
import type { BuiltinUnit, LoaderHost, ReloadReport, Root, UnitInfo } from "./host.ts";
import type { LoaderOptions } from "./loader-options.ts";
import { StartBatch } from "./start-batch.ts";
import { Transformer } from "./transform.ts";
import { Unit } from "./unit.ts";
import { unitInfo } from "./unit-info.ts";
import { UnitLoads, waitingFor } from "./unit-load.ts";
import { inOrder, UnitOrder } from "./unit-order.ts";
import { UnitWatch } from "./unit-watch.ts";

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
  readonly #loads: UnitLoads;
  readonly #units = new Map<string, Unit>();
  readonly #order = new UnitOrder();
  readonly #watch: UnitWatch | undefined;
  #roots: Root[];
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
    this.#loads = new UnitLoads({
      host,
      options,
      transformer: this.#transformer,
      activator: this.#activator,
      touch: (unit) => this.#watch?.touch(unit),
      loaded: () => this.#watch?.refreshSoon(),
    });
    if (!options.watch) return;
    this.#watch = new UnitWatch({
      log: host.log,
      units: () => [...this.#units.values()],
      roots: () => this.#roots,
      rescan: (root) => this.#rescan(root),
      changed: (unit) => void this.#loads.request(unit, "watch"),
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
      if (unit.source !== undefined) void this.#loads.request(unit, "start", batch.turn());
    }
    await Promise.all([...pending, batch.run()]);
    await this.#reactivated();
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
    if (unitId !== undefined) return [await this.#loads.request(this.#unit(unitId), "request")];
    for (const root of this.#roots) this.#rescan(root);
    const enabled = inOrder(this.#units.values()).filter((unit) => unit.enabled);
    return Promise.all(enabled.map((unit) => this.#loads.request(unit, "request")));
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
    return inOrder(this.#units.values()).map((unit) => unitInfo(unit, this.#activator, this.#host.registry));
  }

  /** Takes a unit out of service or brings it back. @throws {Error} for an unknown id. */
  async setEnabled(unitId: string, enabled: boolean): Promise<void> {
    const unit = this.#unit(unitId);
    if (unit.enabled === enabled) return;
    unit.enabled = enabled;
    if (enabled) {
      await unit.running;
      await this.#loads.request(unit, "request");
      return;
    }
    unit.markDirty();
    this.#watch?.drop(unit);
    this.#activator.withdraw([unit], "disabled");
    this.#watch?.refresh();
  }

  /** Loads the units that wait because of a file they may not read. */
  async retryHeld(): Promise<ReloadReport[]> {
    const held = [...this.#units.values()].filter((unit) => unit.held);
    return Promise.all(held.map((unit) => this.#loads.request(unit, "request")));
  }

  /** Paths whose change matters to a unit, absent ones included. @throws {Error} for an unknown id. */
  watchedPaths(unitId: string): string[] {
    return [...this.#unit(unitId).watched];
  }

  /** Whether a path is, or decides, a part of a unit of this origin. */
  concerns(path: string, origin: Origin): boolean {
    return [...this.#units.values()].some((unit) => unit.origin === origin && unit.concerns(path));
  }

  /** Adds units, e.g. when a project is trusted later. Resolves when they are live or have failed. */
  async addRoot(root: Root): Promise<ReloadReport[]> {
    if (this.#roots.some((known) => known.path === root.path && known.kind === root.kind)) return [];
    this.#roots.push(root);
    const reports = await Promise.all(this.#addUnits(root).map((unit) => this.#loads.request(unit, "request")));
    this.#watch?.refresh();
    return reports;
  }

  /** Removes a root and, in one swap, its units. */
  async removeRoot(path: string): Promise<void> {
    const gone = new Set(this.#roots.filter((root) => root.path === path));
    this.#roots = this.#roots.filter((root) => !gone.has(root));
    this.#remove([...this.#units.values()].filter((unit) => unit.root !== undefined && gone.has(unit.root)));
    this.#lookEverywhere();
    this.#watch?.refresh();
  }

  /**
   * Takes a failing unit out of service until its files change or it is reloaded; its gates block meanwhile.
   *
   * @param failed the version it is done for; nothing happens when another one answers.
   */
  quarantine(unitId: string, reason: string, failed?: number): void {
    const unit = this.#units.get(unitId);
    if (unit?.active === undefined) return;
    const generation = unit.active.number;
    if (failed !== undefined && failed !== generation) return;
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
    this.#watch?.stop();
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

  /** Brings in the built-ins that set themselves up synchronously; gives what the others wait for. */
  #startBuiltins(): Promise<void>[] {
    const ready: Ready[] = [];
    const pending: Promise<void>[] = [];
    let together = true;
    const commit = (one: Ready) => {
      if (together) ready.push(one);
      else this.#activator.commit([one]);
    };
    for (const [order, builtin] of this.#options.builtins.entries()) {
      const source = this.#options.dev ? this.#builtinSource(builtin) : undefined;
      const unit = new Unit({ id: builtin.id, origin: "builtin", order, builtin, source });
      this.#units.set(unit.id, unit);
      const setUp = source === undefined ? this.#loads.adopt(unit, commit) : undefined;
      if (setUp !== undefined) pending.push(setUp);
    }
    this.#activator.commit(ready);
    together = false;
    return pending;
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
    for (const unit of this.#addUnits(root)) void this.#loads.request(unit, "watch");
  }

  /** A link that was pointed elsewhere stays the same unit, so that one swap replaces the old code by the new. */
  #move(unit: Unit, source: UnitSource): void {
    this.#units.delete(unit.id);
    unit.id = source.id;
    unit.source = source;
    this.#units.set(unit.id, unit);
    void this.#loads.request(unit, "watch");
  }

  /** Absent for longer than a save takes: the whole unit, or one of its entries. */
  #gone(unit: Unit): void {
    const now = unit.source && describe(unit.source.path);
    if (now !== undefined && now.id === unit.source?.id) return void this.#loads.request(unit, "watch");
    const other = unit.root && discover(unit.root).find((source) => source.id === unit.id);
    if (other === undefined) {
      this.#remove([unit]);
      this.#lookEverywhere();
      return;
    }
    // Another link of the same root still leads to it.
    unit.goOverTo(other);
    this.#watch?.refresh();
  }

  /** What was reached through another root, and known already, may be a unit of this one now. */
  #lookEverywhere(): void {
    for (const root of this.#roots) for (const unit of this.#addUnits(root)) void this.#loads.request(unit, "watch");
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
    this.#watch?.refresh();
  }

  // ── Services ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Units that require a service are activated again when its owner changes, and wait while nobody provides it. */
  #onRegistryChange(diff: RegistryDiff): void {
    if (!diff.touches("service")) return;
    const has = (name: string) => this.#host.registry.get("service", name) !== undefined;
    const orphans: Unit[] = [];
    for (const unit of [...this.#units.values()]) {
      const active = this.#activator.isCommitting(unit) ? undefined : unit.active;
      const missing = active === undefined ? [] : this.#loads.missing(active);
      const changed = active?.requires.find((name) => diff.touches("service", name));
      if (missing.length > 0) {
        unit.waitsFor = missing;
        unit.error = waitingFor(unit, missing);
        orphans.push(unit);
      } else if (unit.waitsFor.length > 0) {
        if (unit.waitsFor.every(has)) this.#reactivate(unit, unit.waitsFor.join(", "));
      } else if (changed !== undefined) this.#reactivate(unit, changed);
    }
    if (orphans.length > 0) this.#activator.withdraw(orphans, "waiting");
  }

  #reactivate(unit: Unit, services: string): void {
    if (unit.wanted && this.#mayReactivate(unit, services)) void this.#loads.request(unit, "service");
  }

  /** What waited for a service of the first swap is live when the start is over. */
  async #reactivated(): Promise<void> {
    for (;;) {
      const running = [...this.#units.values()].flatMap((unit) => (unit.waitsFor.length > 0 ? (unit.running ?? []) : []));
      if (running.length === 0) return;
      await Promise.all(running);
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
    this.#loads.report(unit, error, unit.active?.number ?? 0);
    return false;
  }
}
