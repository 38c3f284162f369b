// Whether and when a failed model call is tried again. Pure: numbers in, a decision out.
import type { ProviderError } from "mortise/extension";

export interface RetryLimits {
  /** Attempts after the first failure. */
  maxRetries: number;
  /** Delay before the first retry; doubles up to `maxBackoffMs`. */
  baseDelayMs: number;
  maxBackoffMs: number;
  /** The longest wait a server may ask for; 0 or less lifts the cap. */
  maxDelayMs: number;
}

/** Timers of Node end longer ones at once: without a cap a server that asks for months would be asked without a pause. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export type Decision = { retry: true; delayMs: number } | { retry: false; reason: string };

/**
 * Decides about the `attempt`-th failure in a row, counting from 1. `random` is uniform in [0, 1).
 *
 * Only retryable faults are tried again: quota, credentials and refusals do not heal by waiting, an overflow needs compaction.
 */
export function decide(error: ProviderError, attempt: number, limits: RetryLimits, random: number): Decision {
  if (error.kind !== "retryable") return { retry: false, reason: error.message };
  if (attempt > limits.maxRetries) return { retry: false, reason: error.message };
  const hint = error.retryAfterMs ?? 0;
  if (limits.maxDelayMs > 0 && hint > limits.maxDelayMs) {
    const reason = `Provider requested ${hint}ms wait, exceeds retry.maxDelayMs (${limits.maxDelayMs}ms). Original error: ${error.message}`;
    return { retry: false, reason };
  }
  return { retry: true, delayMs: Math.min(Math.max(hint, backoff(attempt, limits, random)), LONGEST_TIMER_MS) };
}

/** Exponential with 75–100 % jitter, so that many daemons do not come back at the same moment. */
function backoff(attempt: number, limits: RetryLimits, random: number): number {
  const full = Math.min(limits.baseDelayMs * 2 ** (attempt - 1), limits.maxBackoffMs);
  return Math.round(full * (0.75 + random * 0.25));
}
