import { CompactionResult, defineFrame, z } from "mortise/extension";
import { action } from "./auto-compaction-start.ts";

export default defineFrame({
  name: "auto_compaction_end",
  summary: "An automatic compaction is over; exactly one follows each start.",
  scope: "conversation",
  source: "both",
  fields: z.object({
    action,
    result: CompactionResult.optional().describe("Absent when nothing was compacted"),
    aborted: z.boolean(),
    willRetry: z.boolean().describe("The model is asked again what had not fitted"),
    errorMessage: z.string().optional(),
  }),
  example: {
    type: "auto_compaction_end",
    action: "context-full",
    result: { summary: "## Goal\n…", firstKeptEntryId: "a1b2c3d4", tokensBefore: 171_000 },
    aborted: false,
    willRetry: false,
  },
});
