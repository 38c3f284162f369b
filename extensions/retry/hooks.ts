import {
  type Context,
  defineHook,
  Models,
  messageEnded,
  type ProviderError,
  RetryEnabled,
  runEnded,
  turnFailed,
} from "mortise/extension";
import { decide } from "./_policy.ts";
import { chainSlot, endChain, returnSlot } from "./_state.ts";
import autoRetryStart from "./auto-retry-start.ts";
import { applied, succeeded } from "./fallback-frames.ts";
import { baseDelayMs, fallbackChains, fallbackReturnSeconds, maxBackoffMs, maxDelayMs, maxRetries } from "./settings.ts";

const retryFailed = defineHook(turnFailed, ({ conversation, error, canRetry }, outer) => {
  const ctx = outer.derive({ locals: { conversation } });
  // A complete tool call may have had effects: replaying it could do them twice.
  if (!canRetry || !ctx.setting(RetryEnabled)) return undefined;
  const slot = conversation.slot(chainSlot);
  const attempt = slot.get().attempt + 1;
  const limits = {
    maxRetries: ctx.setting(maxRetries),
    baseDelayMs: ctx.setting(baseDelayMs),
    maxBackoffMs: ctx.setting(maxBackoffMs),
    maxDelayMs: ctx.setting(maxDelayMs),
  };
  const decision = decide(error, attempt, limits, Math.random());
  if (decision.retry) {
    slot.update((chain) => ({ ...chain, attempt }));
    conversation.emit(autoRetryStart, {
      attempt,
      maxAttempts: limits.maxRetries,
      delayMs: decision.delayMs,
      errorMessage: error.message,
    });
    return { retry: { delayMs: decision.delayMs } };
  }
  const fallback = nextFallback(ctx, error);
  if (fallback === undefined) {
    if (decision.reason !== error.message && slot.get().attempt === 0) {
      conversation.emitRaw({ type: "notice", level: "error", message: decision.reason, source: "retry" });
    }
    endChain(ctx, false, decision.reason);
    return undefined;
  }
  endChain(ctx, false, decision.reason);
  applyFallback(ctx, fallback, error.message);
  return { retry: { delayMs: 0 } };
});

type Fallback = NonNullable<ReturnType<Models["resolve"]>>;

/** The next model of the configured chain, for faults another model may not have. */
function nextFallback(ctx: Context, error: ProviderError): Fallback | undefined {
  if (error.kind !== "retryable" && error.kind !== "quota") return undefined;
  const { model } = ctx.conversation.selection;
  if (model === undefined) return undefined;
  const slot = ctx.conversation.slot(chainSlot);
  const { origin = `${model.provider}/${model.id}`, fallbacks } = slot.get();
  const selector = ctx.setting(fallbackChains)[origin]?.[fallbacks];
  if (selector === undefined) return undefined;
  slot.update((chain) => ({ ...chain, origin, fallbacks: fallbacks + 1 }));
  return ctx.tryUse(Models)?.resolve(selector) ?? nextFallback(ctx, error);
}

function applyFallback(ctx: Context, choice: Fallback, reason: string): void {
  const { conversation } = ctx;
  const { model: from } = conversation.selection;
  rememberOwn(ctx, choice);
  conversation.select(choice);
  conversation.slot(chainSlot).update((chain) => ({ ...chain, onFallback: true }));
  const to = `${choice.model.provider}/${choice.model.id}`;
  conversation.emit(applied, { from: from ? `${from.provider}/${from.id}` : "", to, role: "default", reason });
}

/** The model that the user chose stays the one to come back to, however many fallbacks follow each other. */
function rememberOwn(ctx: Context, { model: fallback }: Fallback): void {
  const seconds = ctx.setting(fallbackReturnSeconds);
  const { model: own, thinkingLevel } = ctx.conversation.selection;
  if (seconds === 0 || own === undefined) return;
  const slot = ctx.conversation.slot(returnSlot);
  const known = slot.get();
  const first = known?.fallback === `${own.provider}/${own.id}` ? known : { provider: own.provider, id: own.id, thinkingLevel };
  slot.set({ ...first, fallback: `${fallback.provider}/${fallback.id}`, at: Date.now() + seconds * 1000 });
}

/** The first good answer ends the chain. */
const answered = defineHook(messageEnded, ({ conversation, message }, outer) => {
  if (message.role !== "assistant" || message.stopReason === "error" || message.stopReason === "aborted") return;
  const slot = conversation.slot(chainSlot);
  const { attempt, onFallback } = slot.get();
  if (attempt === 0 && !onFallback) return;
  endChain(outer.derive({ locals: { conversation } }), true);
  if (onFallback) {
    slot.update((chain) => ({ ...chain, onFallback: false }));
    conversation.emit(succeeded, { model: `${message.provider}/${message.model}`, role: "default" });
  }
});

/** Whatever ended the run, no chain stays open behind it. */
const closed = defineHook(runEnded, ({ conversation, status, messages }, outer) => {
  const last = messages.findLast((message) => message.role === "assistant");
  const text = last?.role === "assistant" ? last.errorMessage : undefined;
  const ctx = outer.derive({ locals: { conversation } });
  // Still open here: the wait was cancelled, or the run was aborted in it.
  endChain(ctx, false, status === "completed" ? text : "Retry cancelled");
  conversation.slot(chainSlot).update(() => chainSlot.initial());
});

export default [retryFailed, answered, closed];
