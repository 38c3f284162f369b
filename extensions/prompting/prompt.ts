import { type Context, defineCommand, ImageContent, SlashCommands, z } from "mortise/extension";
import { isConcurrent, type Manner, runSlash, type SlashMatch, settlePending } from "./_slash.ts";
import { announceEnd, sendResult, submitLater } from "./_submit.ts";

/** Acknowledged once accepted; the run's end is `agent_end` (000_…, "Immediate ack vs completion"). */
export default defineCommand({
  name: "prompt",
  group: "Prompting",
  summary: "Sends a user message, or runs a slash command.",
  concurrency: "serial",
  source: "both",
  params: z.object({
    message: z.string(),
    images: z.array(ImageContent).optional(),
    streamingBehavior: z.enum(["steer", "followUp"]).optional().describe("Required while a run is going"),
  }),
  result: z.object({ agentInvoked: z.boolean() }),
  example: {
    params: { message: "Summarize this repo" },
    failure: "Agent is already processing. Use steer() or followUp() to queue messages, or wait for completion.",
  },
  run(ctx, { message, images, streamingBehavior }) {
    const match = message.startsWith("/") ? ctx.tryUse(SlashCommands)?.match(message) : undefined;
    if (match !== undefined) return slash(ctx, match, { images, delivery: streamingBehavior });
    submitLater(ctx, { text: message, images, delivery: streamingBehavior }, true);
    return undefined as never;
  },
});

type Acknowledgement = Promise<{ agentInvoked: boolean }>;

function slash(ctx: Context, match: SlashMatch, manner: Manner): Acknowledgement {
  if (!isConcurrent(match)) return finish(ctx, match, manner) as Acknowledgement;
  // Acknowledged first: what the command sends comes after the response.
  const run = async () => {
    const data = await finish(ctx, match, manner);
    if (data?.agentInvoked === false) sendResult(ctx, data);
  };
  ctx.track(Promise.resolve().then(run));
  return undefined as never;
}

/** Runs the command to its end; undefined when text of it went on to the model as an ordinary prompt. */
async function finish(ctx: Context, match: SlashMatch, manner: Manner) {
  const outcome = await runSlash(ctx, match, manner);
  if (outcome !== undefined) {
    // A template stands for the text the host sent, so it is queued as that would be; a residual prompt is a new one.
    const delivery = match.definition.source === "file" ? manner.delivery : undefined;
    submitLater(ctx, { text: outcome.prompt, images: manner.images, delivery }, true);
    return undefined;
  }
  await settlePending(ctx);
  const agentInvoked = ctx.invocation?.agentInvoked ?? false;
  if (agentInvoked) announceEnd(ctx);
  return { agentInvoked };
}
