import { defineSlashCommand } from "mortise/extension";
import { modelName } from "./_announce.ts";
import { columns, count } from "./_format.ts";

export default defineSlashCommand({
  name: "session",
  description: "Show the session's file, name and size",
  argumentHint: "[info]",
  subcommands: [{ name: "info", usage: "info", description: "The same" }],
  source: "builtin",
  run(ctx, args) {
    if (args !== "" && args !== "info") {
      ctx.output("Usage: /session [info]");
      return;
    }
    const { log, cwd, selection } = ctx.conversation;
    const stats = log.stats();
    ctx.output(
      columns([
        ["Session", log.id],
        ["Name", log.name ?? "none: /rename gives one"],
        ["File", file(log)],
        ...(log.parentSession === undefined ? [] : ([["Parent", log.parentSession]] as const)),
        ["Directory", cwd],
        ["Model", `${modelName(selection.model)}, thinking ${selection.thinkingLevel}`],
        ["Messages", `${count(stats.totalMessages)}, ${count(stats.toolCalls)} tool calls`],
      ]),
    );
  },
});

function file(log: { file: string | undefined; isMaterialized: boolean }): string {
  if (log.file === undefined) return "none: the session is in memory only";
  return log.isMaterialized ? log.file : `${log.file} (with the first message)`;
}
