import { type Context, defineCommand, ImageContent, SlashCommands, z } from "mortise/extension";
import { isConcurrent, isUsers, type Manner, runSlash, type SlashMatch } from "./_slash.ts";
import { submitLater } from "./_submit.ts";

/** Never sends `prompt_result` nor `data.agentInvoked` (000_…, "Edge behavior"). */
export default defineCommand({
  name: "abort_and_prompt",
  group: "Prompting",
  summary: "Ends the run as `abort` does, then sends a user message.",
  concurrency: "serial",
  sealed: true,
  source: "both",
  params: z.object({ message: z.string(), images: z.array(ImageContent).optional() }),
  example: { params: { message: "Stop that and list the files" } },
  async run(ctx, { message, images }) {
    await ctx.conversation.abort("Interrupted by user", { resume: false });
    const match = message.startsWith("/") ? ctx.tryUse(SlashCommands)?.match(message) : undefined;
    if (match === undefined || !isUsers(match)) return submitLater(ctx, { text: message, images }, false);
    const work = runUsers(ctx, match, { images });
    if (!isConcurrent(match)) return work;
    ctx.track(work);
  },
});

/** A command of an extension, or a file that stands for the message. */
async function runUsers(ctx: Context, match: SlashMatch, manner: Manner): Promise<void> {
  const outcome = await runSlash(ctx, match, manner);
  if (outcome !== undefined) submitLater(ctx, { text: outcome.prompt, images: manner.images }, false);
}
