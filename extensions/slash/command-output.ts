import { defineFrame, z } from "mortise/extension";

export default defineFrame({
  name: "command_output",
  summary: "What a slash command prints; it precedes the response of its prompt",
  fields: z.object({ text: z.string() }),
  scope: "conversation",
  source: "both",
  example: { type: "command_output", text: "Model: offline/echo" },
});
