// /bookmark add|list|go: a slash command with subcommands. What `run` does with the words after the name is its own business; the
// list of subcommands is for the hosts that complete them.
import { defineSlashCommand, defineSlot, type SlashContext, z } from "mortise/extension";

const Bookmarks = defineSlot({ name: "bookmarks", schema: z.array(z.string()), initial: (): string[] => [], persist: true });

const bookmark = defineSlashCommand({
  name: "bookmark",
  aliases: ["bm"],
  description: "Keeps lines worth coming back to",
  argumentHint: "add <text> | list | go <number>",
  subcommands: [
    { name: "add", usage: "add <text>", description: "Keep a line" },
    { name: "list", description: "Show what was kept" },
    { name: "go", usage: "go <number>", description: "Ask the model about a line" },
  ],
  // Answered in order and before the next command, because it never waits for anybody.
  concurrency: "serial",
  run(ctx, args) {
    const [verb = "list", ...rest] = args.split(/\s+/).filter((word) => word !== "");
    const text = rest.join(" ");
    const slot = ctx.conversation.slot(Bookmarks);
    if (verb === "add" && text !== "") {
      slot.update((all) => [...all, text]);
      return ctx.output(`Kept as ${slot.get().length}`);
    }
    if (verb === "list") return list(ctx, slot.get());
    const line = verb === "go" ? slot.get()[Number(text) - 1] : undefined;
    if (line === undefined) return ctx.output("Usage: /bookmark add <text> | list | go <number>");
    // What is returned goes to the model instead of the command's own text.
    return { prompt: `Explain this line: ${line}` };
  },
});

export default [Bookmarks, bookmark];

function list(ctx: SlashContext, lines: readonly string[]): void {
  ctx.output(lines.map((line, at) => `${at + 1}. ${line}`).join("\n") || "Nothing was kept yet");
}
