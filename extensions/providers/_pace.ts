// Timing of streams: cancellable waits, and room for the event loop between events that cost nothing to make.
import { setImmediate as immediate, setTimeout as timeout } from "node:timers/promises";

/** Waits; rejects with the signal's reason when it aborts. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  if (ms <= 0) return;
  try {
    await timeout(ms, undefined, { signal });
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
}

/** 4 ms: below one frame of a 60 Hz host, long enough that the turn of the loop costs little. */
const SLICE_MS = 4;

/** Lets I/O and aborts in once a slice of time is used up; generators would otherwise starve the loop. */
export class Breather {
  #since = performance.now();

  async breathe(signal: AbortSignal): Promise<void> {
    if (performance.now() - this.#since < SLICE_MS) return;
    await immediate();
    this.#since = performance.now();
    signal.throwIfAborted();
  }
}
