import { defineSlashCommand, Extensions, type ReloadReport } from "mortise/extension";

export default defineSlashCommand({
  name: "reload",
  aliases: ["reload-plugins"],
  description: "Load extensions again from their files",
  argumentHint: "[name]",
  source: "builtin",
  concurrency: "concurrent",
  async run(ctx, args) {
    const extensions = ctx.use(Extensions);
    const units = extensions.list();
    let id: string | undefined;
    if (args !== "") {
      const found = units.filter((unit) => unit.id === args || unit.name === args);
      if (found.length !== 1) {
        const ids = found.map((unit) => unit.id).join(", ");
        ctx.output(found.length === 0 ? `No extension is called "${args}"` : `Several are called "${args}": say one of ${ids}`);
        return;
      }
      id = found[0]?.id;
    }
    const reports = await extensions.reload(id);
    const names = new Map([...units, ...extensions.list()].map((unit) => [unit.id, unit.name]));
    const changed = reports.filter((report) => report.outcome !== "unchanged");
    const lines = changed.map((report) => describe(names.get(report.id) ?? report.id, report));
    if (lines.length === 0) lines.push("Nothing changed");
    ctx.output(lines.join("\n"));
  },
});

function describe(name: string, { outcome, error, ms }: ReloadReport): string {
  if (outcome === "failed") return `${name}: failed, the version before stays: ${error ?? "unknown error"}`;
  return `${name}: ${outcome}${ms === undefined ? "" : ` in ${ms.toFixed(0)} ms`}`;
}
