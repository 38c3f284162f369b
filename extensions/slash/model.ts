import { type Context, defineSlashCommand, Models, type SlashContext } from "mortise/extension";
import { announceConfig, announceSession, modelName } from "./_announce.ts";
import { runCommand } from "./_run-command.ts";

/** More are not listed: a catalogue has hundreds. */
const MAX_LISTED = 40;

export default defineSlashCommand({
  name: "model",
  aliases: ["models"],
  description: "Show the models, or choose one",
  argumentHint: "[provider/id[:thinking]]",
  source: "builtin",
  async run(ctx, args) {
    if (args === "") {
      ctx.output(overview(ctx));
      return;
    }
    const found = ctx.use(Models).resolve(args);
    if (found === undefined) {
      ctx.output(`No model matches "${args}". ${nearest(ctx, args)}`);
      return;
    }
    await choose(ctx, found);
  },
});

async function choose(ctx: SlashContext, found: NonNullable<ReturnType<Models["resolve"]>>): Promise<void> {
  await runCommand(ctx, "set_model", { provider: found.model.provider, modelId: found.model.id });
  if (found.thinkingLevel !== undefined) await runCommand(ctx, "set_thinking_level", { level: found.thinkingLevel });
  const { model, thinkingLevel } = ctx.conversation.selection;
  ctx.output(`Model: ${modelName(model)}, thinking: ${thinkingLevel}`);
  announceSession(ctx);
  announceConfig(ctx);
}

function overview(ctx: Context): string {
  const { model, thinkingLevel } = ctx.conversation.selection;
  const available = ctx.use(Models).available().map(modelName);
  const listed = available.slice(0, MAX_LISTED).map((name) => (name === modelName(model) ? `* ${name}` : `  ${name}`));
  if (available.length > MAX_LISTED) listed.push(`  … and ${available.length - MAX_LISTED} more`);
  const current = `Model: ${modelName(model)}, thinking: ${thinkingLevel}`;
  return listed.length === 0 ? `${current}\nNo model is available: add a key with login` : `${current}\n${listed.join("\n")}`;
}

function nearest(ctx: Context, text: string): string {
  const wanted = text.toLowerCase();
  const names = ctx.use(Models).available().map(modelName);
  const close = names.filter((name) => name.toLowerCase().includes(wanted)).slice(0, 5);
  return close.length > 0 ? `Close: ${close.join(", ")}` : "/model lists the available ones";
}
