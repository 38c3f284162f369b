// Passes a service's events on, and reads the connection to its end so that it can serve the next request.
import type { ProviderEvent } from "mortise/extension";

/** How long a finished answer waits for the last bytes; servers that leave the connection open lose it. */
const TAIL_MS = 500;

export interface Reader<E> {
  /** True once the answer is complete; only trailing bytes may follow. */
  readonly finished: boolean;
  read(event: E): Iterable<ProviderEvent>;
}

/** All events but the last one. Ends with the stream, or shortly after the answer is complete; the caller looks at `finished`. */
export async function* relay<E>(stream: AsyncIterable<E>, reader: Reader<E>): AsyncGenerator<ProviderEvent> {
  const iterator = stream[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = reader.finished ? await within(TAIL_MS, iterator.next()) : await iterator.next();
      if (next === undefined || next.done) return;
      yield* reader.read(next.value);
    }
  } finally {
    // Not awaited: a read that is under way ends only when the exchange closes the connection, which comes next.
    void iterator.return?.()?.catch(() => {});
  }
}

async function within<T>(ms: number, promise: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), ms);
  });
  try {
    // After the answer is complete a broken connection is no fault any more.
    return await Promise.race([promise.catch(() => undefined), limit]);
  } finally {
    clearTimeout(timer);
  }
}
