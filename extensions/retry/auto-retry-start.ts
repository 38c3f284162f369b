import { defineFrame, z } from "mortise/extension";

export default defineFrame({
  name: "auto_retry_start",
  summary: "A model call failed and will be tried again after a wait.",
  scope: "conversation",
  source: "both",
  fields: z.object({
    attempt: z.number().int().describe("Counts from 1"),
    maxAttempts: z.number().int(),
    delayMs: z.number(),
    errorMessage: z.string(),
  }),
  example: { type: "auto_retry_start", attempt: 1, maxAttempts: 10, delayMs: 480, errorMessage: "Overloaded" },
});
