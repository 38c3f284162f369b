import { defineSlashCommand } from "mortise/extension";
import { announceSession } from "./_announce.ts";
import { runCommand } from "./_run-command.ts";

export default defineSlashCommand({
  name: "rename",
  description: "Name the session",
  argumentHint: "<title>",
  source: "builtin",
  async run(ctx, args) {
    if (args === "") {
      ctx.output("Usage: /rename <title>");
      return;
    }
    await runCommand(ctx, "set_session_name", { name: args });
    ctx.output(`Session: ${ctx.conversation.log.name ?? args}`);
    announceSession(ctx);
  },
});
