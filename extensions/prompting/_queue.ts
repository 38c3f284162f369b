// `steer` and `follow_up`: text for a queue.
import { CommandError, type Context, type ImageContent, SlashCommands } from "mortise/extension";
import { runSlash } from "./_slash.ts";

/** Queues text, or starts a run with it when none is going. @throws {CommandError} for an extension's slash command. */
export async function queueMessage(
  ctx: Context,
  delivery: "steer" | "followUp",
  message: string,
  images: readonly ImageContent[] | undefined,
): Promise<void> {
  const match = message.startsWith("/") ? ctx.tryUse(SlashCommands)?.match(message) : undefined;
  let text = message;
  if (match?.definition.source === "file") {
    const outcome = await runSlash(ctx, match);
    text = outcome?.prompt ?? message;
  } else if (match !== undefined && !match.owner.startsWith("builtin:")) {
    throw new CommandError(
      `Extension command "/${match.name}" cannot be queued. Use prompt() or execute the command when not streaming.`,
    );
  }
  await ctx.conversation.submit(text, { images, delivery, invocation: ctx.invocation });
}
