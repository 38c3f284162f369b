// How many subagents work at once. One that waits for subagents of its own gives its place up meanwhile: with a limit of 1 the
// inner one could otherwise never begin.

export class Semaphore {
  #held = 0;
  readonly #limit: () => number;
  readonly #waiting: { admit(): void }[] = [];

  /** @param limit asked at every decision; 0 means no limit. */
  constructor(limit: () => number) {
    this.#limit = limit;
  }

  get held(): number {
    return this.#held;
  }

  /** Resolves with a place; rejects with the signal's reason. `first` comes before all that wait. */
  acquire(signal: AbortSignal, first = false): Promise<void> {
    if (signal.aborted) return Promise.reject(signal.reason);
    if (this.#isFree() && (first || this.#waiting.length === 0)) {
      this.#held++;
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const entry = {
        admit: () => {
          signal.removeEventListener("abort", giveUp);
          this.#held++;
          resolve();
        },
      };
      const giveUp = () => {
        this.#waiting.splice(this.#waiting.indexOf(entry), 1);
        reject(signal.reason);
      };
      signal.addEventListener("abort", giveUp, { once: true });
      if (first) this.#waiting.unshift(entry);
      else this.#waiting.push(entry);
    });
  }

  release(): void {
    this.#held--;
    while (this.#isFree()) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      next.admit();
    }
  }

  #isFree(): boolean {
    const limit = this.#limit();
    return limit <= 0 || this.#held < limit;
  }
}
