import {
  type Context,
  defineHook,
  type Model,
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

/** The next model of the configured chain, for faults another model may not have. Those without a credential are passed over. */
function nextFallback(ctx: Context, error: ProviderError): Fallback | undefined {
  const { model, thinkingLevel } = ctx.conversation.selection;
  const models = ctx.tryUse(Models);
  if (model === undefined || models === undefined) return undefined;
  const slot = ctx.conversation.slot(chainSlot);
  const { origin = nameOf(model), level = thinkingLevel, fallbacks } = slot.get();
  // The credential of the user's own model is the user's to mend; that of a fallback must not end what others could go on with.
  const mayHelp = error.kind === "retryable" || error.kind === "quota" || (error.kind === "auth" && fallbacks > 0);
  if (!mayHelp) return undefined;
  const chain = chainOf(ctx, models, origin);
  for (let place = fallbacks; place < chain.length; place++) {
    const choice = models.resolve(chain[place] ?? "");
    if (choice === undefined || nameOf(choice.model) === nameOf(model) || !models.hasKey(choice.model.provider)) continue;
    slot.update((state) => ({ ...state, origin, level, fallbacks: place + 1 }));
    return choice;
  }
  return undefined;
}

/** What the setting names for a model: by its full name, else by any selector that means it. */
function chainOf(ctx: Context, models: Models, origin: string): readonly string[] {
  const chains = ctx.setting(fallbackChains);
  const isOrigin = (selector: string) => {
    const found = models.resolve(selector);
    return found !== undefined && nameOf(found.model) === origin;
  };
  return chains[origin] ?? Object.entries(chains).find(([selector]) => isOrigin(selector))?.[1] ?? [];
}

function nameOf({ provider, id }: Model): string {
  return `${provider}/${id}`;
}

function applyFallback(ctx: Context, choice: Fallback, reason: string): void {
  const { conversation } = ctx;
  const { model: from, thinkingLevel: levelBefore } = conversation.selection;
  rememberOwn(ctx, choice);
  const wanted = choice.thinkingLevel ?? conversation.slot(chainSlot).get().level ?? levelBefore;
  const thinkingLevel = ctx.use(Models).clamp(choice.model, wanted);
  conversation.select({ model: choice.model, thinkingLevel });
  conversation.slot(chainSlot).update((chain) => ({ ...chain, onFallback: true }));
  conversation.emit(applied, { from: from ? nameOf(from) : "", to: nameOf(choice.model), role: "default", reason });
  // By name: the frame belongs to the unit that chooses levels by hand.
  if (thinkingLevel !== levelBefore) conversation.emitRaw({ type: "thinking_level_changed", thinkingLevel });
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
