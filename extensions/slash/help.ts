import { defineSlashCommand, SlashCommands, type SlashEntry } from "mortise/extension";
import { columns, oneLine } from "./_format.ts";

export default defineSlashCommand({
  name: "help",
  description: "List the slash commands, or explain one",
  argumentHint: "[command]",
  source: "builtin",
  run(ctx, args) {
    const listing = ctx.use(SlashCommands).listing();
    if (args === "") {
      ctx.output(columns(listing.map((entry) => [usage(entry), oneLine(entry.description ?? "")])));
      return;
    }
    const wanted = args.replace(/^\//, "");
    const entry = listing.find(({ name, aliases }) => name === wanted || aliases?.includes(wanted) === true);
    ctx.output(entry === undefined ? `No slash command is called "/${wanted}". /help lists them` : explain(entry));
  },
});

function usage(entry: SlashEntry): string {
  return entry.input?.hint === undefined ? `/${entry.name}` : `/${entry.name} ${entry.input.hint}`;
}

function explain(entry: SlashEntry): string {
  const lines = [usage(entry), entry.description ?? ""];
  if (entry.aliases !== undefined) lines.push(`Also: ${entry.aliases.map((alias) => `/${alias}`).join(", ")}`);
  for (const { name, usage, description } of entry.subcommands ?? []) {
    lines.push(`  /${entry.name} ${usage ?? name}${description === undefined ? "" : `  ${description}`}`);
  }
  lines.push(`From: ${entry.source}`);
  return lines.filter((line) => line !== "").join("\n");
}
