import { defineSlashCommand, Extensions, type SlashContext, type UnitInfo } from "mortise/extension";
import { columns } from "./_format.ts";

export default defineSlashCommand({
  name: "extensions",
  aliases: ["plugins"],
  description: "List the loaded extensions, or switch one on or off",
  argumentHint: "[all | enable <name> | disable <name>]",
  subcommands: [
    { name: "all", usage: "all", description: "Also the built-in ones" },
    { name: "enable", usage: "enable <name>" },
    { name: "disable", usage: "disable <name>", description: "Until the daemon ends" },
  ],
  source: "builtin",
  // Taking an extension out waits for what it still runs.
  concurrency: "concurrent",
  async run(ctx, args) {
    const units = ctx.use(Extensions).list();
    const [word = "", ...rest] = args.split(/\s+/);
    if (word === "enable" || word === "disable") return change(ctx, units, rest.join(" "), word === "enable");
    if (word !== "" && word !== "all" && word !== "list") {
      ctx.output("Usage: /extensions [all | enable <name> | disable <name>]");
      return;
    }
    const shown = word === "all" ? units : units.filter((unit) => unit.origin !== "builtin" || unit.state !== "active");
    const builtin = units.length - shown.length;
    const lines = shown.length === 0 ? ["No extension besides the built-in ones"] : [columns(shown.map(describe))];
    if (builtin > 0) lines.push(`Built in: ${builtin}. /extensions all lists them`);
    ctx.output(lines.join("\n"));
  },
});

async function change(ctx: SlashContext, units: readonly UnitInfo[], wanted: string, enabled: boolean): Promise<void> {
  const found = units.filter(({ id, name }) => id === wanted || name === wanted);
  const [unit] = found;
  if (unit === undefined)
    ctx.output(wanted === "" ? "Usage: /extensions enable|disable <name>" : `No extension is called "${wanted}"`);
  else if (found.length > 1) ctx.output(`Several are called "${wanted}": say one of ${found.map(({ id }) => id).join(", ")}`);
  else {
    await ctx.use(Extensions).setEnabled(unit.id, enabled);
    ctx.output(`${unit.name} is ${enabled ? "on" : "off"}`);
  }
}

function describe(unit: UnitInfo): [string, string] {
  const parts: string[] = [unit.origin, unit.state];
  if (unit.generation > 1) parts.push(`version ${unit.generation}`);
  if (unit.contributes.length > 0) parts.push(unit.contributes.join(", "));
  if (unit.error !== undefined) parts.push(`error: ${unit.error}`);
  return [unit.name, parts.join("; ")];
}
