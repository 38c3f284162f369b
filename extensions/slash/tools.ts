import { type Context, defineSlashCommand } from "mortise/extension";
import { columns, oneLine } from "./_format.ts";

export default defineSlashCommand({
  name: "tools",
  description: "List the tools the model is offered, or choose which ones are",
  argumentHint: "[all | name,name,…]",
  subcommands: [
    { name: "all", usage: "all", description: "Offer every tool" },
    { name: "list", usage: "name,name,…", description: "Offer only these" },
  ],
  source: "builtin",
  run(ctx, args) {
    const { conversation } = ctx;
    if (args === "all") conversation.setActiveTools(undefined);
    else if (args !== "") {
      const names = args.split(/[\s,]+/).filter((name) => name !== "");
      const unknown = names.filter((name) => ctx.registry.get("tool", name) === undefined);
      if (unknown.length > 0) {
        ctx.output(`No tool is called ${unknown.map((name) => `"${name}"`).join(", ")}. Tools: ${allNames(ctx).join(", ")}`);
        return;
      }
      conversation.setActiveTools(names);
    }
    ctx.output(overview(ctx));
  },
});

function allNames(ctx: Context): string[] {
  return ctx.registry.list("tool").map((entry) => entry.name);
}

function overview(ctx: Context): string {
  const offered = ctx.conversation.toolSchemas();
  const rest = allNames(ctx).filter((name) => !offered.some((tool) => tool.name === name));
  const lines = [
    offered.length === 0
      ? "The model is offered no tools"
      : columns(offered.map((tool) => [tool.name, oneLine(tool.description, 80)])),
  ];
  if (rest.length > 0) lines.push(`Not offered: ${rest.join(", ")}`);
  return lines.join("\n");
}
