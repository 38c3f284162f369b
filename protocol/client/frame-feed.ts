// Hands frames to whoever listens: callbacks, iterators, waiters.
import type { Frame } from "../frame.ts";
import { HostError } from "./errors.ts";
import type { FramePredicate, RequestOptions } from "./types.ts";

type Listener = (frame: Frame) => void;

export class FrameFeed {
  readonly #listeners = new Set<Listener>();
  readonly #endListeners = new Set<() => void>();
  #ended: HostError | undefined;

  publish(frame: Frame): void {
    for (const listener of [...this.#listeners]) listener(frame);
  }

  /** No more frames: iterators end, waiters fail with the reason. */
  end(reason: HostError): void {
    if (this.#ended !== undefined) return;
    this.#ended = reason;
    for (const listener of [...this.#endListeners]) listener();
  }

  listen(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Every frame from now on, kept until it is taken; ends with the connection. */
  frames(): AsyncIterableIterator<Frame> {
    let waiting: Frame[] = [];
    let taken = 0;
    let wake: (() => void) | undefined;
    let done = this.#ended !== undefined;
    const stop = () => {
      done = true;
      this.#listeners.delete(take);
      this.#endListeners.delete(stop);
      wake?.();
    };
    const take = (frame: Frame) => {
      waiting.push(frame);
      wake?.();
    };
    if (!done) {
      this.#listeners.add(take);
      this.#endListeners.add(stop);
    }
    return {
      [Symbol.asyncIterator]() {
        return this;
      },
      async next() {
        for (;;) {
          const frame = waiting[taken];
          taken += 1;
          if (frame !== undefined) return { done: false, value: frame };
          // Taken frames go all at once: shifting one by one would be quadratic for a slow reader.
          waiting = [];
          taken = 0;
          if (done) return { done: true, value: undefined };
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
      },
      async return() {
        waiting = [];
        stop();
        return { done: true, value: undefined };
      },
    };
  }

  /** The first frame from now on that fits. @throws HostError when the connection, the time or the signal ends first. */
  waitFor(what: string, predicate: FramePredicate, options: RequestOptions = {}): Promise<Frame> {
    const { signal, timeoutMs } = options;
    if (this.#ended !== undefined) return Promise.reject(this.#ended);
    if (signal?.aborted === true)
      return Promise.reject(new HostError("connection", `Waiting for ${what} was cancelled`, "cancelled"));
    return new Promise((resolve, reject) => {
      let timer: NodeJS.Timeout | undefined;
      const release = () => {
        clearTimeout(timer);
        this.#listeners.delete(check);
        this.#endListeners.delete(gone);
        signal?.removeEventListener("abort", cancel);
      };
      const fail = (error: unknown) => {
        release();
        reject(error);
      };
      const check = (frame: Frame) => {
        try {
          if (!predicate(frame)) return;
        } catch (error) {
          return fail(error);
        }
        release();
        resolve(frame);
      };
      const gone = () => fail(this.#ended);
      const cancel = () => fail(new HostError("connection", `Waiting for ${what} was cancelled`, "cancelled"));
      this.#listeners.add(check);
      this.#endListeners.add(gone);
      signal?.addEventListener("abort", cancel, { once: true });
      if (timeoutMs === undefined) return;
      const late = () => fail(new HostError("connection", `No ${what} within ${timeoutMs} ms`, "timeout"));
      timer = setTimeout(late, timeoutMs);
    });
  }
}
