// What `prompt` and `abort_and_prompt` have in common: submitted work is acknowledged before it is known how it ends.
import { type Context, Framing, type ImageContent } from "mortise/extension";

export interface Submitted {
  text: string;
  images?: readonly ImageContent[] | undefined;
  delivery?: "steer" | "followUp" | undefined;
}

/** Submits without waiting. A refusal becomes a late failure with the request's id (000_…, "Edge behavior"). */
export function submitLater(ctx: Context, { text, images, delivery }: Submitted, announceResult: boolean): void {
  const { conversation, invocation } = ctx;
  const submission = conversation.submit(text, { images, delivery, invocation });
  submission.catch((error: unknown) => ctx.failLate(error));
  if (!announceResult) return;
  void submission.then(
    async () => {
      const outcome = await submission.settled;
      if (outcome.status === "handled") return sendResult(ctx, { agentInvoked: false });
      if (ctx.tryUse(Framing)?.version !== 2) return;
      // oh-my-pi's client waits for this frame; a queued prompt ends with the run that takes it (DESIGN §3 "protocol v2").
      const ended = (await outcome.delivered) ?? outcome;
      sendResult(ctx, { agentInvoked: true, status: ended.status });
    },
    () => {},
  );
}

/** On protocol v2 a slash command that started a run ends with `prompt_result` too, once that run is over. */
export function announceEnd(ctx: Context): void {
  if (ctx.tryUse(Framing)?.version !== 2) return;
  const { conversation } = ctx;
  void conversation.whenIdle().then(() => {
    const last = conversation.lastAssistant();
    const status = last?.stopReason === "error" ? "error" : last?.stopReason === "aborted" ? "aborted" : "completed";
    sendResult(ctx, { agentInvoked: true, status });
  });
}

/** Sends `prompt_result` for the request at hand. */
export function sendResult(ctx: Context, fields: { agentInvoked: boolean; status?: string }): void {
  const id = ctx.invocation?.id;
  ctx.sendRaw({ type: "prompt_result", ...(id === undefined ? {} : { id }), ...fields });
}
