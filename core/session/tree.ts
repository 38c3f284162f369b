// Entries by id, in file order, with their effective parents. Damage is bridged here: a child of a lost entry hangs on the
// entry that stood before it in the file, so that one broken line does not cut off the history above it.
import type { SessionEntry } from "./entry.ts";

interface Node {
  readonly entry: SessionEntry;
  readonly parent: Node | undefined;
}

export class EntryTree {
  readonly #nodes = new Map<string, Node>();
  readonly #ordered: SessionEntry[] = [];
  /** Lost id → the entry that stands in for it as a parent (undefined: the root). */
  readonly #substitutes = new Map<string, Node | undefined>();
  /** Id that occurs again → the name of its latest occurrence. */
  readonly #renamed = new Map<string, string>();
  #last: Node | undefined;

  get entries(): readonly SessionEntry[] {
    return this.#ordered;
  }
  /** The last entry in file order, which is the leaf after loading. */
  get lastId(): string | null {
    return this.#last?.entry.id ?? null;
  }
  has(id: string): boolean {
    return this.#nodes.has(id);
  }
  get(id: string): SessionEntry | undefined {
    return this.#nodes.get(id)?.entry;
  }
  /** The effective parent, which differs from `entry.parentId` where that entry was lost. */
  parentOf(id: string): string | null {
    return this.#nodes.get(id)?.parent?.entry.id ?? null;
  }
  /** What stands in for a lost entry: null for the root, undefined when `id` was never referred to. */
  substituteOf(id: string): string | null | undefined {
    return this.#substitutes.has(id) ? (this.#substitutes.get(id)?.entry.id ?? null) : undefined;
  }

  /**
   * Adds an entry at the end. An id that is taken gets a suffix, the same one at every load, and later children of that id
   * follow it; the number of such repairs is the caller's to report.
   */
  add(entry: SessionEntry): { entry: SessionEntry; bridged: boolean; renamed: boolean } {
    let kept = entry;
    const renamed = this.#nodes.has(entry.id);
    if (renamed) {
      kept = { ...entry, id: this.#freeName(entry.id) };
      this.#renamed.set(entry.id, kept.id);
    }
    const { parent, bridged } = this.#parentNode(entry);
    const node: Node = { entry: kept, parent };
    this.#nodes.set(kept.id, node);
    this.#ordered.push(kept);
    this.#last = node;
    return { entry: kept, bridged, renamed };
  }

  /** Root → leaf. A null or unknown leaf gives an empty path. */
  path(leafId: string | null): SessionEntry[] {
    const path: SessionEntry[] = [];
    for (let node = leafId === null ? undefined : this.#nodes.get(leafId); node !== undefined; node = node.parent) {
      path.push(node.entry);
    }
    return path.reverse();
  }

  #freeName(id: string): string {
    for (let n = 2; ; n++) {
      const name = `${id}~${n}`;
      if (!this.#nodes.has(name)) return name;
    }
  }

  #parentNode(entry: SessionEntry): { parent: Node | undefined; bridged: boolean } {
    if (entry.parentId === null) return { parent: undefined, bridged: false };
    const known = this.#nodes.get(this.#renamed.get(entry.parentId) ?? entry.parentId);
    if (known !== undefined) return { parent: known, bridged: false };
    if (!this.#substitutes.has(entry.parentId)) this.#substitutes.set(entry.parentId, this.#last);
    return { parent: this.#substitutes.get(entry.parentId), bridged: true };
  }
}
