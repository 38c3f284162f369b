import { defineCommand, ThinkingLevel, z } from "mortise/extension";
import { applyLevel, availableLevels } from "./_levels.ts";

export default defineCommand({
  name: "cycle_thinking_level",
  group: "Thinking",
  summary: "The next stronger thinking level the model has, after the strongest the weakest; null for models without reasoning.",
  concurrency: "serial",
  source: "both",
  params: z.object({}),
  result: z.object({ level: ThinkingLevel }).nullable(),
  example: { params: {}, result: { level: "high" } },
  run(ctx) {
    const { model, thinkingLevel } = ctx.conversation.selection;
    if (!model?.reasoning) return null;
    const levels = availableLevels(ctx);
    const next = levels[(levels.indexOf(thinkingLevel) + 1) % levels.length];
    return next === undefined ? null : { level: applyLevel(ctx, next) };
  },
});
