import { rm } from "node:fs/promises";
import { CommandError, Conversations, defineSlashCommand, type SlashContext } from "mortise/extension";
import { modelName } from "./_announce.ts";
import { columns, count } from "./_format.ts";
import { runCommand } from "./_run-command.ts";

export default defineSlashCommand({
  name: "session",
  description: "Show the session's file, name and size, or delete it",
  argumentHint: "[info|delete]",
  subcommands: [
    { name: "info", usage: "info", description: "The same" },
    { name: "delete", usage: "delete", description: "Remove its file and what belongs to it, and begin a new session" },
  ],
  source: "builtin",
  run(ctx, args) {
    if (args === "delete") return remove(ctx);
    if (args !== "" && args !== "info") {
      ctx.output("Usage: /session [info|delete]");
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

/** The file is only removed once the session is closed: what is still being written would make it again. */
async function remove(ctx: SlashContext): Promise<void> {
  const { conversation } = ctx;
  const { file, isMaterialized, artifacts } = conversation.log;
  if (file === undefined || !isMaterialized) return ctx.output("There is nothing to delete: the session has no file");
  if (conversation.isStreaming) throw new CommandError("Cannot delete the session while a run is going: abort it first", "busy");
  const conversations = ctx.use(Conversations);
  await runCommand(ctx, "new_session", {});
  // An extension may have kept the session.
  if (conversations.byFile(file) !== undefined)
    throw new CommandError("The session was not deleted: it was not left", "cancelled");
  await rm(file, { force: true });
  if (artifacts.dir !== undefined) await rm(artifacts.dir, { recursive: true, force: true });
  // The conversation that the command was typed into is closed by now.
  conversations.attached.emitRaw({ type: "command_output", text: `Deleted ${file}. This is a new session` });
}

function file(log: { file: string | undefined; isMaterialized: boolean }): string {
  if (log.file === undefined) return "none: the session is in memory only";
  return log.isMaterialized ? log.file : `${log.file} (with the first message)`;
}
