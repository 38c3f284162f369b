// Compaction that nobody asked for: when it is due, what the host is told, and when it is better left alone.
import {
  type AgentMessage,
  CommandError,
  CompactionEnabled,
  type Context,
  errorMessage,
  estimateTokens,
  type Model,
  notice,
} from "mortise/extension";
import { blankOutputsFor } from "./_blanking.ts";
import { type Compacted, execute, type Prepared, prepare, windowText } from "./_engine.ts";
import { guardSlot } from "./_state.ts";
import { count, measure, type Sizes } from "./_tokens.ts";
import autoCompactionEnd from "./auto-compaction-end.ts";
import autoCompactionStart from "./auto-compaction-start.ts";

type Reason = "threshold" | "overflow" | "idle";
const ACTION = "context-full";
/** Growth that counts as a change after an attempt that did not help, as a share of the window. */
const GROWTH_SHARE = 0.1;

/** Compacts when the context, with `coming`, is above the threshold. */
export async function compactAboveThreshold(
  ctx: Context,
  signal: AbortSignal,
  coming: readonly AgentMessage[] = [],
): Promise<void> {
  const { model } = ctx.conversation.selection;
  if (model === undefined || !ctx.setting(CompactionEnabled) || signal.aborted) return;
  const sizes = await measure(ctx, model);
  const total = sizes.total + coming.reduce((sum, message) => sum + estimateTokens(message) * sizes.scale, 0);
  if (total <= sizes.threshold || isBlocked(ctx, model, sizes) || signal.aborted) return;
  const saved = blankOutputsFor(ctx, total - sizes.threshold, sizes.scale);
  if (saved > 0) return tell(ctx, "info", `Old outputs of tools are left out of what is sent: about ${count(saved)} tokens`);
  await autoCompact(ctx, "threshold", signal, coming.length > 0);
}

/** Makes room after the service refused the context. True when the model may be asked again. */
export async function recoverFromOverflow(ctx: Context, signal: AbortSignal): Promise<boolean> {
  const { model } = ctx.conversation.selection;
  if (model === undefined || !ctx.setting(CompactionEnabled)) return false;
  const slot = ctx.conversation.slot(guardSlot);
  const sizes = await measure(ctx, model);
  if (signal.aborted) return false;
  const { overflowed, blocked } = slot.get();
  // What could not be cut before this request may well be now: it holds newer messages, and trying costs nothing.
  if (overflowed || (blocked?.why !== "refused" && isBlocked(ctx, model, sizes))) {
    tell(ctx, "error", `Context overflow recovery failed: ${stillTooLarge(sizes, model)}`);
    return false;
  }
  slot.update((guard) => ({ ...guard, overflowed: true }));
  return autoCompact(ctx, "overflow", signal);
}

/**
 * True when the context fits afterwards. Tells the host of start and end; refusals before the start become one notice.
 * `followed`: a prompt comes next, so that nothing in context is what the user said last.
 */
export async function autoCompact(ctx: Context, reason: Reason, signal: AbortSignal, followed = false): Promise<boolean> {
  const { conversation } = ctx;
  let prepared: Prepared;
  try {
    prepared = await prepare(ctx, { reason, signal, followed });
  } catch (error) {
    if (signal.aborted) return false;
    await block(ctx, "refused");
    tell(ctx, reason === "overflow" ? "error" : "warning", `${PREFIX[reason]}${errorMessage(error)}`);
    return false;
  }
  const unmark = conversation.markCompacting();
  conversation.emit(autoCompactionStart, { reason, action: ACTION });
  let compacted: Compacted | undefined;
  let failure: unknown;
  try {
    compacted = await execute(ctx, prepared);
  } catch (error) {
    failure = error;
  } finally {
    unmark();
  }
  return compacted === undefined
    ? await failed(ctx, reason, signal, failure)
    : await succeeded(ctx, reason, signal, prepared, compacted);
}

async function succeeded(
  ctx: Context,
  reason: Reason,
  signal: AbortSignal,
  { sizes, model }: Prepared,
  { result, tokensAfter }: Compacted,
): Promise<boolean> {
  // Of a model that names no window nobody knows; the service says so if it is too much again.
  const most = reason === "overflow" && sizes.window > 1 ? sizes.window : sizes.threshold;
  const fits = tokensAfter <= most;
  if (fits) ctx.conversation.slot(guardSlot).update((guard) => ({ ...guard, blocked: undefined }));
  else await block(ctx, "futile");
  const willRetry = reason === "overflow" && fits && !signal.aborted;
  const text = `it freed too little: about ${count(tokensAfter)} tokens remain. ${stillTooLarge(sizes, model)}`;
  const errorText = !fits && reason === "overflow" ? { errorMessage: `${PREFIX.overflow}${text}` } : {};
  ctx.conversation.emit(autoCompactionEnd, { action: ACTION, result, aborted: false, willRetry, ...errorText });
  if (!fits && reason !== "overflow") tell(ctx, "warning", `Automatic compaction stops until the context changes: ${text}`);
  return fits;
}

async function failed(ctx: Context, reason: Reason, signal: AbortSignal, error: unknown): Promise<boolean> {
  const aborted = signal.aborted || (CommandError.is(error) && error.code === "cancelled");
  if (!signal.aborted) await block(ctx, "failed");
  ctx.conversation.emit(autoCompactionEnd, {
    action: ACTION,
    aborted,
    willRetry: false,
    ...(aborted ? {} : { errorMessage: `${PREFIX[reason]}${errorMessage(error)}` }),
  });
  return false;
}

const PREFIX: Record<Reason, string> = {
  threshold: "Auto-compaction failed: ",
  overflow: "Context overflow recovery failed: ",
  idle: "Auto-compaction failed: ",
};

function stillTooLarge(sizes: Sizes, model: Model): string {
  return (
    `System prompt and tools take about ${count(sizes.prompt)} tokens, the messages about ${count(sizes.messages)}, ` +
    `and ${windowText(sizes, model)}`
  );
}

function tell(ctx: Context, level: "info" | "warning" | "error", message: string): void {
  ctx.conversation.emit(notice, { level, message, source: "compaction" });
}

/** No second try after one that did not help, until something changed (public-bugs 19). */
export function isBlocked(ctx: Context, model: Model, sizes: Sizes): boolean {
  const { blocked } = ctx.conversation.slot(guardSlot).get();
  if (blocked === undefined || blocked.model !== nameOf(model)) return false;
  const change = sizes.total - blocked.tokens;
  return change < sizes.window * GROWTH_SHARE && change > -sizes.window * GROWTH_SHARE;
}

async function block(ctx: Context, why: "refused" | "failed" | "futile"): Promise<void> {
  const { model } = ctx.conversation.selection;
  if (model === undefined) return;
  const { total } = await measure(ctx, model);
  const blocked = { why, tokens: total, model: nameOf(model) };
  ctx.conversation.slot(guardSlot).update((guard) => ({ ...guard, blocked }));
}

/** A prompt is a reason to try again what failed by accident, and what it allows to cut. */
export function forgetFailure(ctx: Context): void {
  const slot = ctx.conversation.slot(guardSlot);
  const why = slot.get().blocked?.why;
  if (why === "failed" || why === "refused") slot.update((guard) => ({ ...guard, blocked: undefined }));
}

/** An answer came through. */
export function forgetOverflow(ctx: Context): void {
  const slot = ctx.conversation.slot(guardSlot);
  if (slot.get().overflowed) slot.update((guard) => ({ ...guard, overflowed: false }));
}

function nameOf(model: Model): string {
  return `${model.provider}/${model.id}`;
}
