// Passes a service's events on, and reads the connection to its end so that it can serve the next request.
import { errorMessage, ProviderError, type ProviderEvent } from "mortise/extension";
import { FailureInBody } from "./_faults.ts";

/** How long a finished answer waits for the last bytes; servers that leave the connection open lose it. */
const TAIL_MS = 500;

export interface Reader<E> {
  /** True once the service said why it stopped: counts and trailing bytes may follow, and nothing is lost without them. */
  readonly mayEnd: boolean;
  read(event: E): Iterable<ProviderEvent>;
}

/** All events but the last one. Ends with the stream, or shortly after the answer is complete; the caller looks at `mayEnd`. */
export async function* relay<E>(stream: AsyncIterable<E>, reader: Reader<E>): AsyncGenerator<ProviderEvent> {
  const iterator = stream[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = reader.mayEnd ? await within(TAIL_MS, iterator.next()) : await iterator.next();
      if (next === undefined || next.done) return;
      try {
        yield* reader.read(next.value);
      } catch (error) {
        throw ProviderError.is(error) || error instanceof FailureInBody ? error : senseless(error);
      }
    }
  } finally {
    // Not awaited: a read that is under way ends only when the exchange closes the connection, which comes next.
    void iterator.return?.()?.catch(() => {});
  }
}

/** What the services' types promise, servers that only resemble them may not keep. */
function senseless(error: unknown): ProviderError {
  return new ProviderError(`The service sent an event that makes no sense: ${errorMessage(error)}`, "retryable", {
    cause: error,
  });
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
