import {
  CommandError,
  Conversations,
  defineCommand,
  SlashCommands,
  sessionBeforeBranch,
  sessionBranched,
  z,
} from "mortise/extension";

export default defineCommand({
  name: "branch",
  group: "Session",
  summary: "Makes a session of everything before a user message and goes on there; the old session stays as it is.",
  concurrency: "serial",
  source: "both",
  params: z.object({ entryId: z.string() }),
  result: z.object({ text: z.string().describe("Text of the user message, to edit and send again"), cancelled: z.boolean() }),
  example: {
    params: { entryId: "a1b2c3d4" },
    result: { text: "Rename the parser", cancelled: false },
    failure: "Invalid entry ID for branching",
  },
  async run(ctx, { entryId }) {
    const { conversation } = ctx;
    if (conversation.takenBy !== undefined) {
      throw new CommandError(`Cannot branch while a ${conversation.takenBy} is in progress`, "busy");
    }
    const { log, text } = conversation.log.branchCopy(entryId);
    const answer = await ctx.hook(sessionBeforeBranch, { conversation, entryId });
    if (answer?.cancel === true) return { text, cancelled: true };
    const conversations = ctx.use(Conversations);
    const next = conversations.create({ log });
    const waiting = conversation.queue.drain();
    next.queue.add("steering", ...waiting.steering);
    next.queue.add("followUp", ...waiting.followUp);
    const previousFile = conversation.log.file;
    await conversations.replace(next);
    await ctx
      .derive({ locals: { conversation: next } })
      .hook(sessionBranched, { conversation: next, reason: "fork", previousFile });
    ctx.tryUse(SlashCommands)?.announce(true);
    return { text, cancelled: false };
  },
});
