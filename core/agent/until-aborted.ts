// Waiting for work that may not listen to its signal.

/** The promise's value, or undefined `graceMs` after the abort. The promise goes on; its later failure is ignored. */
export function untilAborted<T>(promise: Promise<T>, signal: AbortSignal, graceMs: number): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    let timer: NodeJS.Timeout | undefined;
    const onAbort = () => {
      timer = setTimeout(() => resolve(undefined), graceMs);
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    promise.then(resolve, reject).finally(() => {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
    });
  });
}

/** Resolves with the promise or after `limitMs`, whatever comes first; never rejects. */
export function atMost(promise: Promise<unknown>, limitMs: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, limitMs);
    promise
      .then(
        () => resolve(),
        () => resolve(),
      )
      .finally(() => clearTimeout(timer));
  });
}
