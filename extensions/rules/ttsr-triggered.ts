import { defineFrame, z } from "mortise/extension";
import { RulePayload } from "./_rule.ts";

export default defineFrame({
  name: "ttsr_triggered",
  summary: "Rules matched what the model was saying: its answer was cut off, or it is told about them after the turn or the call",
  fields: z.object({ rules: z.array(RulePayload) }),
  scope: "conversation",
  source: "both",
  example: {
    type: "ttsr_triggered",
    rules: [
      {
        name: "no-console",
        path: "/work/.mortise/rules/no-console.md",
        content: "Use the logger.",
        condition: ["console\\.log"],
      },
    ],
  },
});
