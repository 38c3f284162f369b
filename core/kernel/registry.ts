// kind + name → a stack of contributions ordered by rank; the top one answers. `swap` is the only writer and is synchronous,
// so a reader never sees half an extension. Kinds with many answers (hooks) read the whole list.
import { type AnyDefinition, define, type Kind, type Kinds } from "./definition.ts";
import { RANK, type Scope } from "./scope.ts";

/** One contribution in place. */
export interface Entry<K extends Kind = Kind> {
  readonly kind: K;
  readonly name: string;
  readonly definition: Kinds[K];
  readonly scope: Scope;
  /** Monotonic; breaks ties between contributions of one unit. */
  readonly seq: number;
}

/** What a swap changed, seen from readers: names whose top contribution appeared, vanished or became another one. */
export interface RegistryDiff {
  readonly version: number;
  readonly added: readonly Entry[];
  readonly removed: readonly Entry[];
  /** `kind:name` keys whose answer differs from before. */
  readonly changed: ReadonlySet<string>;
  touches(kind: Kind, name?: string): boolean;
}

/** Settings that decide conflicts differently: which owner answers a name, which never do, and what is there under a second name. */
export interface ConflictPolicy {
  /** `kind:name` → owner id that answers. */
  prefer: ReadonlyMap<string, string>;
  /** Owner ids, or `kind:name owner`, values that are hidden. */
  suppress: ReadonlySet<string>;
  /** `kind:name owner` → a further name of that contribution, in whose stack it takes the place of its rank. */
  alias?: ReadonlyMap<string, string> | undefined;
}

const noPolicy: ConflictPolicy = { prefer: new Map(), suppress: new Set() };

export function keyOf(kind: Kind, name: string): string {
  return `${kind}:${name}`;
}

export class Registry {
  readonly #stacks = new Map<string, Entry[]>();
  readonly #names = new Map<Kind, Map<string, Entry[]>>();
  readonly #listCache = new Map<Kind, readonly Entry[]>();
  readonly #allCache = new Map<Kind, readonly Entry[]>();
  readonly #listeners = new Set<(diff: RegistryDiff) => void>();
  /** What stands under a second name, by the contribution it is. */
  readonly #aliases = new Map<Entry, Entry>();
  #policy: ConflictPolicy = noPolicy;
  #seq = 0;
  #version = 0;

  /** Grows by one with every swap that changes something. */
  get version(): number {
    return this.#version;
  }

  /** How many contributions there are, shadowed ones included. */
  get size(): number {
    let size = 0;
    for (const stack of this.#stacks.values()) size += stack.length;
    return size;
  }

  /** The contribution that answers `name`, or undefined. */
  get<K extends Kind>(kind: K, name: string): Entry<K> | undefined {
    const stack = this.#names.get(kind)?.get(name);
    return stack === undefined ? undefined : (this.#top(stack) as Entry<K> | undefined);
  }

  /** Everything under `name`, the answering one first. */
  stack<K extends Kind>(kind: K, name: string): readonly Entry<K>[] {
    const stack = this.#names.get(kind)?.get(name) ?? [];
    const top = this.#top(stack);
    if (top === undefined || top === stack[0]) return stack as unknown as readonly Entry<K>[];
    return [top, ...stack.filter((entry) => entry !== top)] as unknown as readonly Entry<K>[];
  }

  /** The answering contribution of every name of a kind, in rank, discovery and registration order. */
  list<K extends Kind>(kind: K): readonly Entry<K>[] {
    let cached = this.#listCache.get(kind);
    if (cached === undefined) {
      const tops: Entry[] = [];
      for (const stack of this.#names.get(kind)?.values() ?? []) {
        const top = this.#top(stack);
        if (top !== undefined) tops.push(top);
      }
      cached = tops.sort(byDiscovery);
      this.#listCache.set(kind, cached);
    }
    return cached as unknown as readonly Entry<K>[];
  }

  /** Every contribution of a kind, shadowed ones included, lowest rank first. */
  all<K extends Kind>(kind: K): readonly Entry<K>[] {
    let cached = this.#allCache.get(kind);
    if (cached === undefined) {
      cached = [...(this.#names.get(kind)?.values() ?? [])]
        .flat()
        .filter((entry) => !this.#suppressed(entry))
        .sort(byDiscovery);
      this.#allCache.set(kind, cached);
    }
    return cached as unknown as readonly Entry<K>[];
  }

  /** Everything one scope contributed, in the order in which it did. */
  ownedBy(scope: Scope): Entry[] {
    const owned: Entry[] = [];
    for (const stack of this.#stacks.values()) for (const entry of stack) if (entry.scope === scope) owned.push(entry);
    return owned.sort((a, b) => a.seq - b.seq);
  }

  /** Makes an entry for `swap`; it is not live before. @throws {ExtensionError} for a kind the scope may not contribute. */
  entry(definition: AnyDefinition, scope: Scope): Entry {
    scope.assertPermitted(definition.kind, definition.name);
    return { kind: definition.kind, name: definition.name, definition, scope, seq: this.#seq++ } as Entry;
  }

  /**
   * Replaces contributions in one synchronous step and tells the listeners once. Removing what is not there is no error.
   */
  swap(change: { remove?: Iterable<Entry>; add?: Iterable<Entry> }): RegistryDiff {
    const before = new Map<string, AnyDefinition | undefined>();
    const removed: Entry[] = [];
    const added: Entry[] = [];
    for (const entry of change.remove ?? []) {
      if (!this.#take(entry, before)) continue;
      removed.push(entry);
      this.#dropAlias(entry, before);
    }
    for (const entry of change.add ?? []) {
      this.#put(entry, before);
      added.push(entry);
      this.#addAlias(entry, before);
    }
    return this.#publish(before, added, removed);
  }

  /** Sets how conflicts are decided; readers see it at once. */
  setPolicy(policy: ConflictPolicy): RegistryDiff {
    const before = new Map<string, AnyDefinition | undefined>();
    for (const [key, stack] of this.#stacks) before.set(key, this.#top(stack)?.definition);
    this.#policy = policy;
    for (const entry of [...this.#aliases.keys()]) this.#dropAlias(entry, before);
    if (policy.alias?.size) for (const entry of [...this.#stacks.values()].flat()) this.#addAlias(entry, before);
    return this.#publish(before, [], []);
  }

  /** Called after every swap that changed something, in order of subscription. Returns the unsubscription. */
  onChange(listener: (diff: RegistryDiff) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #put(entry: Entry, before: Map<string, AnyDefinition | undefined>): void {
    const stack = this.#remember(entry, before);
    stack.push(entry);
    stack.sort(byRank);
  }

  /** False when it is not there. */
  #take(entry: Entry, before: Map<string, AnyDefinition | undefined>): boolean {
    const stack = this.#remember(entry, before);
    const index = stack.indexOf(entry);
    if (index >= 0) stack.splice(index, 1);
    return index >= 0;
  }

  #addAlias(entry: Entry, before: Map<string, AnyDefinition | undefined>): void {
    const name = this.#policy.alias?.get(`${keyOf(entry.kind, entry.name)} ${entry.scope.owner.id}`);
    if (name === undefined || name === entry.name) return;
    const alias = { ...entry, name, definition: define({ ...entry.definition, name }) } as Entry;
    this.#aliases.set(entry, alias);
    this.#put(alias, before);
  }

  #dropAlias(entry: Entry, before: Map<string, AnyDefinition | undefined>): void {
    const alias = this.#aliases.get(entry);
    if (alias === undefined) return;
    this.#aliases.delete(entry);
    this.#take(alias, before);
  }

  #publish(before: Map<string, AnyDefinition | undefined>, added: Entry[], removed: Entry[]): RegistryDiff {
    const changed = new Set<string>();
    for (const [key, definition] of before) {
      const stack = this.#stacks.get(key);
      if ((stack && this.#top(stack)?.definition) !== definition) changed.add(key);
      if (stack?.length === 0) this.#forget(key);
    }
    if (added.length + removed.length + changed.size > 0) this.#version++;
    this.#listCache.clear();
    this.#allCache.clear();
    const diff: RegistryDiff = {
      version: this.#version,
      added,
      removed,
      changed,
      touches: (kind, name) =>
        name !== undefined ? changed.has(keyOf(kind, name)) : [...changed].some((key) => key.startsWith(`${kind}:`)),
    };
    if (added.length + removed.length + changed.size > 0) for (const listener of [...this.#listeners]) listener(diff);
    return diff;
  }

  #remember(entry: Entry, before: Map<string, AnyDefinition | undefined>): Entry[] {
    const key = keyOf(entry.kind, entry.name);
    let stack = this.#stacks.get(key);
    if (stack === undefined) {
      stack = [];
      this.#stacks.set(key, stack);
      let names = this.#names.get(entry.kind);
      if (names === undefined) {
        names = new Map();
        this.#names.set(entry.kind, names);
      }
      names.set(entry.name, stack);
    }
    if (!before.has(key)) before.set(key, this.#top(stack)?.definition);
    return stack;
  }

  #forget(key: string): void {
    this.#stacks.delete(key);
    const [kind, name] = splitKey(key);
    this.#names.get(kind)?.delete(name);
  }

  #top(stack: readonly Entry[]): Entry | undefined {
    if (this.#policy === noPolicy) return stack[0];
    const visible = stack.filter((entry) => !this.#suppressed(entry));
    const preferred = visible[0] && this.#policy.prefer.get(keyOf(visible[0].kind, visible[0].name));
    return visible.find((entry) => entry.scope.owner.id === preferred) ?? visible[0];
  }

  #suppressed(entry: Entry): boolean {
    const { suppress } = this.#policy;
    return (
      suppress.size > 0 &&
      (suppress.has(entry.scope.owner.id) || suppress.has(`${keyOf(entry.kind, entry.name)} ${entry.scope.owner.id}`))
    );
  }
}

/** Kinds hold no colon, names may. */
function splitKey(key: string): [Kind, string] {
  const colon = key.indexOf(":");
  return [key.slice(0, colon) as Kind, key.slice(colon + 1)];
}

/**
 * Answering order of a stack: higher rank, then earlier discovery, then earlier registration. Wire commands are the exception:
 * a built-in keeps answering, because replacing one takes `overrideCommand` (DESIGN §9).
 */
function byRank(a: Entry, b: Entry): number {
  const rank = RANK[b.scope.owner.origin] - RANK[a.scope.owner.origin];
  return (a.kind === "command" ? -rank : rank) || a.scope.owner.order - b.scope.owner.order || a.seq - b.seq;
}

/** Listing order: built-ins first, then discovery, then registration. */
function byDiscovery(a: Entry, b: Entry): number {
  return RANK[a.scope.owner.origin] - RANK[b.scope.owner.origin] || a.scope.owner.order - b.scope.owner.order || a.seq - b.seq;
}
