// A scope owns the effects of one generation of one extension. Disposing it undoes them in reverse order.
// Invariant: after `dispose` resolves nothing the scope owned is left, whatever the undo functions did.
import { ExtensionError, StaleExtensionError } from "./errors.ts";

export type ScopeState = "staging" | "active" | "draining" | "disposed";

/** Precedence of origins; a higher rank answers first (DESIGN §5 "Names"). */
export const RANK = { builtin: 0, package: 1, user: 2, project: 3, cli: 4, host: 5 } as const;
export type Origin = keyof typeof RANK;

/** Who owns a scope. */
export interface Owner {
  /** Stable across reloads: the unit's real path, or `builtin:<name>`. */
  readonly id: string;
  readonly origin: Origin;
  /** Place within its rank: the first answers. Survives a reload. */
  readonly order: number;
}

export interface ScopeOptions {
  owner: Owner;
  generation: number;
  /** How long one undo may take before disposal goes on without it. */
  undoTimeoutMs?: number;
  /** Told of undo functions that throw or time out. */
  onUndoError?: (error: unknown, label: string) => void;
}

/** `run`: a tool call or a provider's iterator, which may drain without limit; `call`: everything else (DESIGN §5 "Reload"). */
export type LeaseKind = "call" | "run";

interface Undo {
  run: () => void | Promise<void>;
  label: string;
}

export class Scope {
  readonly owner: Owner;
  readonly generation: number;
  state: ScopeState = "staging";
  /** Kinds this generation may contribute; undefined for all. */
  permissions: ReadonlySet<string> | undefined;
  readonly #options: ScopeOptions;
  readonly #controller = new AbortController();
  readonly #undos = new Set<Undo>();
  readonly #drained: Array<() => void> = [];
  #leases = 0;
  #runs = 0;
  #disposal: Promise<void> | undefined;

  constructor(options: ScopeOptions) {
    this.owner = options.owner;
    this.generation = options.generation;
    this.#options = options;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Running calls that hold this generation. */
  get leases(): number {
    return this.#leases;
  }

  /** Labels of what is owned now, oldest first; for introspection and leak checks. */
  get effects(): string[] {
    return [...this.#undos].map((undo) => undo.label);
  }

  /** @throws {StaleExtensionError} when the scope is disposed. */
  assertLive(action: string): void {
    if (this.state === "disposed") throw new StaleExtensionError(this.owner.id, action);
  }

  /** @throws {ExtensionError} for a kind outside the permissions the unit states. */
  assertPermitted(kind: string, name: string): void {
    if (this.permissions === undefined || this.permissions.has(kind)) return;
    const allowed = [...this.permissions].join(", ") || "nothing";
    throw new ExtensionError(
      this.owner.id,
      "validate",
      `The ${kind} "${name}" is outside the permissions the unit states (${allowed}); add "${kind}" to them or remove it`,
    );
  }

  /**
   * Runs `undo` at disposal, last owned first. The returned function undoes now and forgets; it is idempotent.
   * On a disposed scope `undo` runs at once, so that a late effect cannot leak.
   */
  own(undo: () => void | Promise<void>, label = "effect"): () => Promise<void> {
    const entry: Undo = { run: undo, label };
    if (this.state === "disposed") {
      const done = this.#run(entry);
      return () => done;
    }
    this.#undos.add(entry);
    return () => (this.#undos.delete(entry) ? this.#run(entry) : Promise.resolve());
  }

  /** Like `own`, for an effect that ended by itself: forgets it without running it. */
  track(undo: () => void | Promise<void>, label = "effect"): () => void {
    const entry: Undo = { run: undo, label };
    if (this.state === "disposed") {
      void this.#run(entry);
      return () => {};
    }
    this.#undos.add(entry);
    return () => {
      this.#undos.delete(entry);
    };
  }

  /** Those of them that may drain without limit. */
  get runs(): number {
    return this.#runs;
  }

  /** Holds the generation for a running call. The returned function releases once. */
  lease(kind: LeaseKind = "call"): () => void {
    this.#leases++;
    if (kind === "run") this.#runs++;
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#leases--;
      if (kind === "run") this.#runs--;
      if (this.#leases === 0) for (const resolve of this.#drained.splice(0)) resolve();
    };
  }

  /** Resolves when no call holds the generation. */
  whenDrained(): Promise<void> {
    if (this.#leases === 0) return Promise.resolve();
    return new Promise((resolve) => this.#drained.push(resolve));
  }

  /** Aborts the signal and runs every undo, last first, each bounded. Idempotent; never rejects. */
  dispose(reason = "unloaded"): Promise<void> {
    this.#disposal ??= this.#dispose(reason);
    return this.#disposal;
  }

  async #dispose(reason: string): Promise<void> {
    this.state = "disposed";
    this.#controller.abort(new StaleExtensionError(this.owner.id, `go on (${reason})`));
    const undos = [...this.#undos].reverse();
    this.#undos.clear();
    for (const undo of undos) await this.#run(undo);
  }

  async #run(undo: Undo): Promise<void> {
    try {
      const result = undo.run();
      if (result instanceof Promise) await bounded(result, this.#options.undoTimeoutMs ?? 2000, undo.label);
    } catch (error) {
      this.#options.onUndoError?.(error, undo.label);
    }
  }
}

function bounded(promise: Promise<void>, timeoutMs: number, label: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`Undoing "${label}" took longer than ${timeoutMs} ms`)), timeoutMs);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
