// The retry chain of a conversation: open from the first `auto_retry_start` to its one `auto_retry_end`.
import { type Context, defineSlot, ThinkingLevel, z } from "mortise/extension";
import autoRetryEnd from "./auto-retry-end.ts";

export const chainSlot = defineSlot({
  name: "retry",
  schema: z.object({
    /** Attempts announced and not yet ended; 0 when no chain is open. */
    attempt: z.number().int(),
    /** Model the fallbacks of this run started from, as `provider/id`. */
    origin: z.string().optional(),
    /** Its thinking level: a fallback that cannot follow it does not decide for the next one. */
    level: ThinkingLevel.optional(),
    /** Fallback models tried or passed over in this run. */
    fallbacks: z.number().int(),
    /** True while the answer of a fallback model is awaited. */
    onFallback: z.boolean(),
  }),
  initial: () => ({ attempt: 0, origin: undefined, level: undefined, fallbacks: 0, onFallback: false }),
});

/** What a conversation that goes on with a fallback model comes back to. */
export const returnSlot = defineSlot({
  name: "retry return",
  schema: z
    .object({
      provider: z.string(),
      id: z.string(),
      thinkingLevel: ThinkingLevel,
      /** The fallback at work, as `provider/id`: another one chosen meanwhile is the user's will. */
      fallback: z.string(),
      /** Unix milliseconds from which on it may be tried again. */
      at: z.number(),
    })
    .optional(),
  initial: () => undefined,
});

/** Ends an open chain; does nothing when none is open, so that a chain ends exactly once. */
export function endChain(ctx: Context, success: boolean, finalError?: string): void {
  const slot = ctx.conversation.slot(chainSlot);
  const { attempt } = slot.get();
  if (attempt === 0) return;
  slot.update((chain) => ({ ...chain, attempt: 0 }));
  ctx.conversation.emit(autoRetryEnd, { success, attempt, ...(finalError === undefined ? {} : { finalError }) });
}
