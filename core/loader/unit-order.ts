// The place of a unit within its rank: by root, then by real path. Places are numbers with room between them, so that a unit found
// later takes the place it would have had, and no other place changes.
import { type Origin, RANK } from "../kernel/scope.ts";
import type { Root } from "./host.ts";

interface Place {
  readonly origin: Origin;
  readonly root: number;
  readonly id: string;
  readonly order: number;
}

const STEP = 1024;

export class UnitOrder {
  /** Sorted by origin, root and id. */
  readonly #places: Place[] = [];
  readonly #roots = new Map<Root, number>();

  /** The place of a unit; the same unit forgotten and found again gets an equal one in relation to the others. */
  place(root: Root, id: string): number {
    const { origin } = root;
    const number = this.#roots.get(root) ?? this.#roots.size;
    this.#roots.set(root, number);
    const place = { origin, root: number, id };
    let index = this.#places.findIndex((other) => compare(place, other) < 0);
    if (index < 0) index = this.#places.length;
    const before = this.#neighbour(index - 1, origin);
    const after = this.#neighbour(index, origin);
    const order =
      before === undefined
        ? (after?.order ?? STEP) - STEP
        : after === undefined
          ? before.order + STEP
          : (before.order + after.order) / 2;
    this.#places.splice(index, 0, { ...place, order });
    return order;
  }

  forget(id: string): void {
    const index = this.#places.findIndex((place) => place.id === id);
    if (index >= 0) this.#places.splice(index, 1);
  }

  #neighbour(index: number, origin: Origin): Place | undefined {
    const place = this.#places[index];
    return place?.origin === origin ? place : undefined;
  }
}

function compare(a: Omit<Place, "order">, b: Place): number {
  return RANK[a.origin] - RANK[b.origin] || a.root - b.root || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}

/** Lowest rank first, then by place. */
export function inOrder<U extends { origin: Origin; order: number }>(units: Iterable<U>): U[] {
  return [...units].sort((a, b) => RANK[a.origin] - RANK[b.origin] || a.order - b.order);
}
