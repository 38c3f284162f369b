// Long work in short slices of time, so that frames, aborts and streams go on meanwhile.
import { setImmediate as nextTurn } from "node:timers/promises";

/** Well below the 50 ms of DESIGN §7, because one step may overshoot; long enough that a turn of the loop costs little. */
const SLICE_MS = 8;

/** To be asked between two steps: `if (slices.due) await slices.rest()`. Asking costs a look at the clock. */
export class Slices {
  #since = performance.now();

  /** True when the event loop was held long enough. */
  get due(): boolean {
    return performance.now() - this.#since > SLICE_MS;
  }

  /** One turn of the event loop, after which a new slice begins. */
  async rest(): Promise<void> {
    await nextTurn();
    this.restart();
  }

  /** The event loop has turned by itself, e.g. for a read from a file. */
  restart(): void {
    this.#since = performance.now();
  }
}
