import { defineSlashCommand, ThinkingLevel } from "mortise/extension";
import { announceConfig } from "./_announce.ts";
import { runCommand } from "./_run-command.ts";

const LEVELS = ThinkingLevel.options;

export default defineSlashCommand({
  name: "thinking",
  aliases: ["effort"],
  description: "Show or set how much the model thinks before it answers",
  argumentHint: `[${LEVELS.join("|")}]`,
  source: "builtin",
  async run(ctx, args) {
    if (args === "") {
      ctx.output(`Thinking: ${ctx.conversation.selection.thinkingLevel}. Levels: ${LEVELS.join(", ")}`);
      return;
    }
    const level = ThinkingLevel.safeParse(args.toLowerCase());
    if (!level.success) {
      ctx.output(`Unknown thinking level "${args}". Levels: ${LEVELS.join(", ")}`);
      return;
    }
    await runCommand(ctx, "set_thinking_level", { level: level.data });
    const effective = ctx.conversation.selection.thinkingLevel;
    const note = effective === level.data ? "" : ` (the model does not know "${level.data}")`;
    ctx.output(`Thinking: ${effective}${note}`);
    announceConfig(ctx);
  },
});
