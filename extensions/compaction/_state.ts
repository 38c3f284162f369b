// What automatic compaction remembers of a conversation, so that it never goes round in circles.
import { defineSlot, z } from "mortise/extension";

export const guardSlot = defineSlot({
  name: "compaction",
  schema: z.object({
    /** True from an overflow on until an answer came through: a second one in between is not recovered from. */
    overflowed: z.boolean(),
    /** The last automatic attempt that did not help; none is made again until something changed. */
    blocked: z
      .object({
        /** `refused`: nothing could be cut, and nobody was asked. `failed`: no summary came. `futile`: it freed too little. */
        why: z.enum(["refused", "failed", "futile"]),
        /** Tokens in context then. */
        tokens: z.number(),
        /** `provider/id` then. */
        model: z.string(),
      })
      .optional(),
  }),
  initial: () => ({ overflowed: false, blocked: undefined }),
});
