import { defineFrame, z } from "mortise/extension";

/** Strict hosts refuse other values (protocol-facts §2.4). */
export const reason = z.enum(["threshold", "overflow", "idle"]);
export const action = z.enum(["context-full", "handoff"]);

export default defineFrame({
  name: "auto_compaction_start",
  summary: "The context is being compacted without the host having asked; `isCompacting` is true already.",
  scope: "conversation",
  source: "both",
  fields: z.object({ reason, action }),
  example: { type: "auto_compaction_start", reason: "threshold", action: "context-full" },
});
