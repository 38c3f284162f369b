import { defineFrame, ThinkingLevel, z } from "mortise/extension";

export default defineFrame({
  name: "thinking_level_changed",
  summary: "Another thinking level holds from the next request on",
  fields: z.object({ thinkingLevel: ThinkingLevel }),
  scope: "conversation",
  source: "mortise",
  example: { type: "thinking_level_changed", thinkingLevel: "high" },
});
