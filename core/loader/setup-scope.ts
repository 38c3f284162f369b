// What an extension's `setup` gets. Before the swap additions are recorded, after it they reach the registry at once; either way
// the generation owns them.
import type { Context } from "../kernel/context.ts";
import type { AnyDefinition, MaybePromise, SetupScope } from "../kernel/definition.ts";
import type { Entry } from "../kernel/registry.ts";
import type { Scope } from "../kernel/scope.ts";
import type { LoaderHost } from "./host.ts";
import { validate } from "./validate.ts";

/** State an old generation leaves to the next one. */
export interface HotState {
  data: unknown;
  version?: string | number | undefined;
}

type LiveReason = "startup" | "reload";
export type RetireReason = "reload" | "unload" | "shutdown";

/** What the code of `onRetire` may take together, in milliseconds. */
const RETIRE_LIMIT_MS = 2000;

interface Addition {
  definitions: readonly AnyDefinition[];
  /** Set once live. */
  entries: Entry[];
}

export class StagedSetup implements SetupScope {
  readonly owner: string;
  readonly signal: AbortSignal;
  readonly hot: HotState;
  readonly #host: LoaderHost;
  readonly #scope: Scope;
  readonly #additions = new Set<Addition>();
  readonly #sets = new Map<string, Addition>();
  readonly #onLive: Array<(reason: LiveReason) => MaybePromise<void>> = [];
  readonly #onRetire: Array<(reason: RetireReason) => MaybePromise<void>> = [];
  #retired: Promise<void> | undefined;
  #context: Context | undefined;
  #live = false;

  constructor(host: LoaderHost, scope: Scope, hot: HotState) {
    this.#host = host;
    this.#scope = scope;
    this.owner = scope.owner.id;
    this.signal = scope.signal;
    this.hot = hot;
  }

  get ctx(): Context {
    this.#context ??= this.#host.createContext(this.#scope);
    return this.#context;
  }

  add(...definitions: AnyDefinition[]): () => void {
    this.#scope.assertLive("add contributions");
    const addition = this.#record(definitions);
    return () => this.#remove(addition);
  }

  replace(set: string, definitions: readonly AnyDefinition[]): void {
    this.#scope.assertLive(`replace the set "${set}"`);
    const old = this.#sets.get(set);
    if (this.#live) validate(this.owner, definitions, { schemas: true });
    const addition: Addition = { definitions: [...definitions], entries: [] };
    this.#sets.set(set, addition);
    this.#additions.add(addition);
    if (old !== undefined) this.#additions.delete(old);
    if (!this.#live) return;
    addition.entries = this.#entriesOf(addition);
    this.#host.registry.swap({ remove: old?.entries ?? [], add: addition.entries });
  }

  own(undo: () => MaybePromise<void>, label?: string): () => Promise<void> {
    return this.#scope.own(undo, label);
  }

  onLive(run: (reason: LiveReason) => MaybePromise<void>): void {
    this.#onLive.push(run);
  }

  onRetire(run: (reason: RetireReason) => MaybePromise<void>): void {
    this.#onRetire.push(run);
  }

  /** Tells the unit that it is live. Nobody waits for what it does then; failures are reported. */
  announceLive(reason: LiveReason): void {
    for (const run of this.#onLive.splice(0)) void this.#contained("live", () => run(reason));
  }

  /** Tells the unit, once, that it ends. Resolves when it is done with that, or after the limit. */
  retire(reason: RetireReason): Promise<void> {
    this.#retired ??= this.#live ? this.#runRetire(reason) : Promise.resolve();
    return this.#retired;
  }

  async #runRetire(reason: RetireReason): Promise<void> {
    if (this.#onRetire.length === 0) return;
    let timer: NodeJS.Timeout | undefined;
    const limit = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, RETIRE_LIMIT_MS);
    });
    const told = Promise.all(this.#onRetire.splice(0).map((run) => this.#contained("retire", () => run(reason))));
    await Promise.race([told, limit]);
    clearTimeout(timer);
  }

  async #contained(event: string, run: () => MaybePromise<void>): Promise<void> {
    try {
      await this.#host.runAs(this.#scope, run);
    } catch (error) {
      const { generation } = this.#scope;
      this.#host.reportError({ owner: this.owner, event, error, phase: event === "live" ? "setup" : "dispose", generation });
    }
  }

  /** Everything recorded so far, in order. */
  staged(): AnyDefinition[] {
    return [...this.#additions].flatMap((addition) => addition.definitions);
  }

  /** Makes the entries for the swap; from here on additions are live at once. */
  goLive(): Entry[] {
    this.#live = true;
    const entries: Entry[] = [];
    for (const addition of this.#additions) {
      addition.entries = this.#entriesOf(addition);
      entries.push(...addition.entries);
    }
    return entries;
  }

  #record(definitions: readonly AnyDefinition[]): Addition {
    if (this.#live) validate(this.owner, definitions, { schemas: true });
    const addition: Addition = { definitions, entries: [] };
    this.#additions.add(addition);
    if (this.#live) {
      addition.entries = this.#entriesOf(addition);
      this.#host.registry.swap({ add: addition.entries });
    }
    return addition;
  }

  #remove(addition: Addition): void {
    if (!this.#additions.delete(addition)) return;
    if (this.#live) this.#host.registry.swap({ remove: addition.entries });
  }

  #entriesOf(addition: Addition): Entry[] {
    return addition.definitions.map((definition) => this.#host.registry.entry(definition, this.#scope));
  }
}
