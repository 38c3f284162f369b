import { defineFrame, Model, ThinkingLevel, z } from "mortise/extension";

export default defineFrame({
  name: "config_update",
  summary: "A slash command changed the model or the thinking level",
  fields: z.object({ model: Model.optional(), thinkingLevel: ThinkingLevel.optional() }),
  scope: "conversation",
  source: "both",
  example: { type: "config_update", thinkingLevel: "high" },
});
