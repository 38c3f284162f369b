import {
  type Context,
  type ContinueAnswer,
  type ConversationHandle,
  contextOverflow,
  defineHook,
  runStarting,
  turnEnded,
} from "mortise/extension";
import { compactAboveThreshold, forgetFailure, forgetOverflow, recoverFromOverflow } from "./_auto.ts";
import { autoContinue } from "./settings.ts";

const beforePrompt = defineHook(runStarting, async ({ conversation, prompts, signal }, outer) => {
  const ctx = within(outer, conversation);
  if (prompts.length > 0) {
    forgetFailure(ctx);
    forgetOverflow(ctx);
  }
  await compactAboveThreshold(ctx, signal, prompts);
});

const afterTurn = defineHook(turnEnded, async ({ conversation, message, signal }, outer) => {
  if (message.stopReason === "error" || message.stopReason === "aborted") return;
  const ctx = within(outer, conversation);
  forgetOverflow(ctx);
  await compactAboveThreshold(ctx, signal);
});

const onOverflow = defineHook(
  contextOverflow,
  async ({ conversation, reason, message, signal }, outer): Promise<ContinueAnswer | undefined> => {
    const ctx = within(outer, conversation);
    if (reason === "overflow") return (await recoverFromOverflow(ctx, signal)) ? { continue: true } : undefined;
    // The answer was cut at the output limit. There is new room only if the end of its turn made some.
    const compactedAt = conversation.messages.findLast((each) => each.role === "compactionSummary")?.timestamp;
    if (!ctx.setting(autoContinue) || compactedAt === undefined || compactedAt < message.timestamp) return undefined;
    if (conversation.queue.steering.length === 0) {
      const text = "Your answer was cut off at the output limit. Go on where it stopped, without repeating it.";
      conversation.queue.add("steering", { role: "developer", content: text, attribution: "agent", timestamp: Date.now() });
    }
    return { continue: true };
  },
);

function within(ctx: Context, conversation: ConversationHandle): Context {
  return ctx.derive({ locals: { conversation } });
}

export default [beforePrompt, afterTurn, onOverflow];
