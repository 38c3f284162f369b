import { defineCommand, ThinkingLevel, z } from "mortise/extension";
import { applyLevel } from "./_levels.ts";

export default defineCommand({
  name: "set_thinking_level",
  group: "Thinking",
  summary: "How much the model thinks, from its next request on; a level it lacks becomes the nearest it has.",
  concurrency: "serial",
  source: "both",
  params: z.object({
    level: z.union([ThinkingLevel, z.literal("auto")]).describe("auto: what the model recommends"),
  }),
  example: { params: { level: "high" } },
  run(ctx, { level }) {
    applyLevel(ctx, level === "auto" ? (ctx.conversation.selection.model?.thinking?.defaultLevel ?? "medium") : level);
  },
});
