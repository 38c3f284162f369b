// How long the event loop is held, in CPU time of this thread where the system tells it: that says the same on a busy machine.
import { readFileSync } from "node:fs";

/** Milliseconds this thread has run so far; by the clock where there is no /proc. */
function spent(): number {
  try {
    return Number(readFileSync("/proc/thread-self/schedstat", "utf8").split(" ")[0]) / 1e6;
  } catch {
    return performance.now();
  }
}

/** Watches until the answer is called, which gives the longest time between two turns of the loop, in ms. */
export function watchLoop(): () => number {
  let last = spent();
  let longest = 0;
  const look = () => {
    const now = spent();
    longest = Math.max(longest, now - last);
    last = now;
  };
  const timer = setInterval(look, 1);
  return () => {
    clearInterval(timer);
    look();
    return longest;
  };
}
