import { defineFrame, z } from "mortise/extension";

export default defineFrame({
  name: "auto_retry_end",
  summary: "A chain of retries is over; sent exactly once for each chain.",
  scope: "conversation",
  source: "both",
  fields: z.object({
    success: z.boolean(),
    attempt: z.number().int().describe("The last attempt, counting from 1"),
    finalError: z.string().optional(),
  }),
  example: { type: "auto_retry_end", success: false, attempt: 2, finalError: "Retry cancelled" },
});
