// The first load of many units: evaluated together, set up one after another in discovery order, live in one swap. A unit that is
// slower than the patience does not hold the others; it goes live on its own.

/** One unit's part in the batch. */
export interface Turn<T> {
  /** Resolves when the units before have been set up or the patience is over. */
  ready(): Promise<void>;
  /** Hands in what goes live; resolves after the swap. */
  commit(item: T): Promise<void>;
  /** The unit has nothing to hand in. */
  done(): void;
}

export class StartBatch<T> {
  readonly #patienceMs: number;
  readonly #flush: (items: T[]) => void;
  readonly #turns: Array<{ release: () => void; settled: Promise<void> }> = [];
  readonly #collected: T[] = [];
  readonly #flushed = deferred();
  #open = true;

  constructor(patienceMs: number, flush: (items: T[]) => void) {
    this.#patienceMs = patienceMs;
    this.#flush = flush;
  }

  turn(): Turn<T> {
    const ready = deferred();
    const settled = deferred();
    this.#turns.push({ release: ready.resolve, settled: settled.promise });
    return {
      ready: () => ready.promise,
      commit: (item) => {
        if (!this.#open) {
          this.#flush([item]);
          return Promise.resolve();
        }
        this.#collected.push(item);
        settled.resolve();
        return this.#flushed.promise;
      },
      done: settled.resolve,
    };
  }

  /** Lets the turns go in order and makes the swap. */
  async run(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const over = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, this.#patienceMs);
    });
    for (const turn of this.#turns) {
      turn.release();
      await Promise.race([turn.settled, over]);
    }
    clearTimeout(timer);
    this.#open = false;
    this.#flush(this.#collected);
    this.#flushed.resolve();
  }
}

function deferred(): { promise: Promise<void>; resolve: () => void } {
  let resolve = () => {};
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
