import { defineCommand, ThinkingLevel, z } from "mortise/extension";
import { availableLevels } from "./_levels.ts";

export default defineCommand({
  name: "get_available_thinking_levels",
  group: "Thinking",
  summary: "The thinking levels the model of the conversation has, weakest first.",
  concurrency: "serial",
  source: "mortise",
  params: z.object({}),
  result: z.object({ levels: z.array(ThinkingLevel) }),
  example: { params: {}, result: { levels: ["off", "low", "medium", "high"] } },
  run: (ctx) => ({ levels: availableLevels(ctx) }),
});
