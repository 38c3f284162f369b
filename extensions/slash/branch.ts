import { CommandError, Conversations, defineSlashCommand } from "mortise/extension";
import { columns, oneLine } from "./_format.ts";
import { runCommand } from "./_run-command.ts";

/** Numbers count from the newest message, which is the one people go back to. */
export default defineSlashCommand({
  name: "branch",
  aliases: ["branch-points"],
  description: "List the messages the session can branch before, or branch before one",
  argumentHint: "[number|entry id]",
  subcommands: [{ name: "list", usage: "list", description: "The same as without a word: newest first" }],
  source: "builtin",
  async run(ctx, args) {
    const { conversation } = ctx;
    const points = conversation.log.userMessages().toReversed();
    if (args === "" || args === "list") {
      if (points.length === 0) return ctx.output("There is nothing to branch before: the session has no messages");
      return ctx.output(
        columns(points.map(({ entryId, text }, index) => [`${String(index + 1).padStart(3)}. ${entryId}`, oneLine(text, 80)])),
      );
    }
    const point = points.find(({ entryId }, index) => entryId === args || String(index + 1) === args);
    if (point === undefined) return ctx.output(`Usage: /branch [number|entry id]. /branch lists ${points.length} of them`);
    if (conversation.isStreaming) throw new CommandError("Cannot branch while a run is going: abort it first", "busy");
    await runCommand(ctx, "branch", { entryId: point.entryId });
    // The conversation that the command was typed into is closed by now.
    const text = `This is a new session. It ends before: ${oneLine(point.text, 200)}`;
    ctx.use(Conversations).attached.emitRaw({ type: "command_output", text });
  },
});
