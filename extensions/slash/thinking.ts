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
    const level = levelOf(args.toLowerCase());
    if (level === undefined) {
      ctx.output(`Unknown thinking level "${args}". Levels: ${LEVELS.join(", ")}`);
      return;
    }
    await runCommand(ctx, "set_thinking_level", { level });
    const effective = ctx.conversation.selection.thinkingLevel;
    const note = effective === level ? "" : ` (the model does not know "${level}")`;
    ctx.output(`Thinking: ${effective}${note}`);
    announceConfig(ctx);
  },
});

/** The level, or the only one that begins like this; two letters at least (agent-semantics §2.7). */
function levelOf(text: string): ThinkingLevel | undefined {
  const exact = LEVELS.find((level) => level === text);
  const [found, ...more] = text.length < 2 ? [] : LEVELS.filter((level) => level.startsWith(text));
  return exact ?? (more.length === 0 ? found : undefined);
}
