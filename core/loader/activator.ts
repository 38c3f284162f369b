// The only part of the loader that changes the registry: brings generations live in one swap, takes them out, lets old ones drain.
// Invariants: every entry belongs to an active generation; a unit has at most one generation draining.
import { define } from "../kernel/definition.ts";
import { ExtensionError } from "../kernel/errors.ts";
import { type Entry, keyOf } from "../kernel/registry.ts";
import { Scope } from "../kernel/scope.ts";
import type { Generation } from "./generation.ts";
import type { LoaderHost } from "./host.ts";
import type { Unit } from "./unit.ts";

export interface Ready {
  unit: Unit;
  generation: Generation;
}

/** Told after a generation went live. */
export interface Activation {
  readonly unitId: string;
  readonly scope: Scope;
  /** The generation it replaced; undefined for a first load. */
  readonly previous: Scope | undefined;
}

export interface ActivatorOptions {
  /** How long calls other than runs may hold an old generation. */
  drainLimitMs?: number | undefined;
  isGate?: ((hookPoint: string) => boolean) | undefined;
}

const DRAIN_LIMIT_MS = 30_000;
/** How often a generation past its limit is looked at for the end of its last run. */
const RUN_CHECK_MS = 1_000;

export class Activator {
  readonly #host: LoaderHost;
  readonly #options: ActivatorOptions;
  readonly #listeners = new Set<(activation: Activation) => void>();
  readonly #reported = new Set<string>();
  /** What answers for the gates of quarantined units. */
  readonly #blockers = new Map<Unit, Scope>();
  #committing: ReadonlySet<Unit> = new Set();

  constructor(host: LoaderHost, options: ActivatorOptions) {
    this.#host = host;
    this.#options = options;
  }

  onActivated(listener: (activation: Activation) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** True while a swap that brings in this unit runs. */
  isCommitting(unit: Unit): boolean {
    return this.#committing.has(unit);
  }

  /** Makes generations live: one synchronous swap, no await between reading the old state and writing the new. */
  commit(ready: readonly Ready[]): void {
    const live = ready.filter(({ unit, generation }) => {
      if (unit.wanted && generation.scope.state !== "disposed") return true;
      void generation.discard();
      return false;
    });
    if (live.length === 0) return;
    const { registry } = this.#host;
    const replaced = live.map(({ unit }) => unit.active);
    const remove = live.flatMap(({ unit }) => [...this.#entriesOf(unit), ...this.#unblock(unit)]);
    const add = live.flatMap(({ unit, generation }) => {
      generation.scope.state = "active";
      if (unit.active !== undefined) unit.active.scope.state = "draining";
      unit.active = generation;
      unit.state = "active";
      unit.waitsFor = [];
      unit.error = undefined;
      unit.timings = generation.timings;
      return generation.goLive();
    });
    this.#committing = new Set(live.map(({ unit }) => unit));
    const started = performance.now();
    try {
      registry.swap({ remove, add });
    } finally {
      this.#committing = new Set();
      for (const { generation } of live) generation.timings.swap = performance.now() - started;
    }
    for (const entry of add) this.#reportShadow(entry);
    live.forEach(({ unit, generation }, index) => {
      const previous = replaced[index];
      for (const listener of [...this.#listeners]) {
        listener({ unitId: unit.id, scope: generation.scope, previous: previous?.scope });
      }
      generation.announceLive(previous === undefined ? "startup" : "reload");
      if (previous !== undefined) this.#retire(unit, previous, "reload");
    });
  }

  /** Takes units out in one swap; running calls finish. */
  withdraw(units: readonly Unit[], state: "disabled" | "disposed" | "waiting"): void {
    this.#withdraw(units, state, []);
  }

  /** Takes a failing unit out; its gates block, because a safety check that crashes does not mean yes. */
  quarantine(unit: Unit, reason: string): void {
    if (unit.active === undefined) return;
    const scope = new Scope({ owner: unit.owner, generation: unit.active.number });
    scope.state = "active";
    const blockers = this.#host.registry.ownedBy(unit.active.scope).flatMap((entry) => this.#blockerOf(entry, scope, reason));
    this.#withdraw([unit], "quarantined", blockers);
    this.#blockers.set(unit, scope);
  }

  #withdraw(units: readonly Unit[], state: "disabled" | "disposed" | "waiting" | "quarantined", add: Entry[]): void {
    const remove = units.flatMap((unit) => [...this.#entriesOf(unit), ...this.#unblock(unit)]);
    const retired = units.map((unit) => unit.active);
    for (const unit of units) {
      if (unit.active !== undefined) unit.active.scope.state = "draining";
      unit.active = undefined;
      unit.state = state;
    }
    this.#host.registry.swap({ remove, add });
    units.forEach((unit, index) => {
      const generation = retired[index];
      if (generation !== undefined) this.#retire(unit, generation, "unload");
    });
  }

  #entriesOf(unit: Unit): Entry[] {
    return unit.active === undefined ? [] : this.#host.registry.ownedBy(unit.active.scope);
  }

  #unblock(unit: Unit): Entry[] {
    const scope = this.#blockers.get(unit);
    this.#blockers.delete(unit);
    return scope === undefined ? [] : this.#host.registry.ownedBy(scope);
  }

  #blockerOf(entry: Entry, scope: Scope, reason: string): Entry[] {
    const { definition } = entry;
    if (definition.kind !== "hook" || !this.#options.isGate?.(definition.name)) return [];
    const run = () => {
      throw new ExtensionError(scope.owner.id, "hook", `"${scope.owner.id}" was taken out of service: ${reason}`);
    };
    return [this.#host.registry.entry(define({ ...definition, run }), scope)];
  }

  // ── Draining ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Lets running calls finish, then disposes. Runs (tool calls, model streams) have no limit, other calls 30 s. When an older one
   * still drains, this one is the middle of three and goes at once.
   */
  #retire(unit: Unit, generation: Generation, reason: "reload" | "unload"): void {
    const { scope } = generation;
    if (scope.leases === 0 || unit.draining !== undefined) {
      void generation.end(reason);
      return;
    }
    let timer: NodeJS.Timeout | undefined;
    const finish = () => {
      clearTimeout(timer);
      if (unit.draining !== generation) return;
      unit.draining = undefined;
      unit.forceDrain = undefined;
      void generation.end(reason);
    };
    const expire = () => {
      if (scope.runs === 0) return finish();
      timer = setTimeout(expire, RUN_CHECK_MS).unref();
    };
    unit.draining = generation;
    unit.forceDrain = finish;
    timer = setTimeout(expire, this.#options.drainLimitMs ?? DRAIN_LIMIT_MS).unref();
    void scope.whenDrained().then(finish);
  }

  /** Ends everything of a unit now. Each undo is bounded. */
  async end(unit: Unit): Promise<void> {
    const generations = [unit.draining, unit.active];
    // First of all, while the unit's own hooks and services are still there.
    await Promise.all(generations.map((generation) => generation?.retire("shutdown")));
    unit.forceDrain?.();
    this.withdraw([unit], "disposed");
    unit.forceDrain?.();
    await Promise.all(generations.map((generation) => generation?.end("shutdown")));
  }

  // ── Shadowing ────────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Whom a unit hides and who hides it. */
  shadows(unit: Unit): { hides: Array<{ key: string; owner: string }>; hiddenBy: Array<{ key: string; owner: string }> } {
    const hides: Array<{ key: string; owner: string }> = [];
    const hiddenBy: Array<{ key: string; owner: string }> = [];
    for (const entry of this.#entriesOf(unit)) {
      if (entry.kind === "hook") continue;
      const key = keyOf(entry.kind, entry.name);
      const [top, ...below] = this.#host.registry.stack(entry.kind, entry.name);
      if (top === entry) hides.push(...below.map((other) => ({ key, owner: other.scope.owner.id })));
      else if (top !== undefined) hiddenBy.push({ key, owner: top.scope.owner.id });
    }
    return { hides, hiddenBy };
  }

  #reportShadow(entry: Entry): void {
    if (entry.kind === "hook") return;
    const stack = this.#host.registry.stack(entry.kind, entry.name);
    const [top, second] = stack;
    if (top === undefined || second === undefined) return;
    const winner = top.scope.owner.id;
    const loser = (top === entry ? second : entry).scope.owner.id;
    const key = `${keyOf(entry.kind, entry.name)} ${winner} ${loser}`;
    if (winner === loser || this.#reported.has(key)) return;
    this.#reported.add(key);
    this.#host.log.info(`The ${entry.kind} "${entry.name}" of "${winner}" hides that of "${loser}"`);
  }
}
