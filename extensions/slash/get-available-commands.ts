import { defineCommand, SlashCommands, SlashEntry, z } from "mortise/extension";

export default defineCommand({
  name: "get_available_commands",
  group: "State",
  summary: "Lists the slash commands a prompt may start with.",
  concurrency: "serial",
  source: "both",
  params: z.object({}),
  result: z.object({ commands: z.array(SlashEntry) }),
  example: {
    params: {},
    result: { commands: [{ name: "help", description: "List the slash commands", source: "builtin" }] },
  },
  run: (ctx) => ({ commands: [...ctx.use(SlashCommands).listing()] }),
});
