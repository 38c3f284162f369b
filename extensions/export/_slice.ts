/** How long an export may hold the event loop, in milliseconds: a run may be streaming meanwhile. */
const SLICE_MS = 10;

/** To be awaited between two pieces of work: lets the event loop turn when it was held long enough. */
export function slicer(): () => Promise<void> {
  let start = performance.now();
  return async () => {
    if (performance.now() - start < SLICE_MS) return;
    await new Promise((resolve) => setImmediate(resolve));
    start = performance.now();
  };
}
