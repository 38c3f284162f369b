import { defineFrame, SlashEntry, z } from "mortise/extension";

export default defineFrame({
  name: "available_commands_update",
  summary: "The slash commands a prompt may start with; first after start-up, then whenever the listing changes",
  fields: z.object({ commands: z.array(SlashEntry) }),
  scope: "process",
  source: "both",
  example: {
    type: "available_commands_update",
    commands: [{ name: "model", aliases: ["models"], description: "Show or choose the model", source: "builtin" }],
  },
});
