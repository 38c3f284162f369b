// One compaction: what is replaced, by which summary, and the entry in the log. Knows nothing of commands and frames.
import {
  CommandError,
  type CompactionEntry,
  type CompactionPlan,
  type CompactionReason,
  type CompactionResult,
  type Context,
  errorMessage,
  estimateTokens,
  type Model,
  messageOf,
  notice,
  type SessionLog,
  Slices,
  sessionCompacted,
  sessionCompactionFailed,
  untilAborted,
} from "mortise/extension";
import { chooseCut, type Item, itemsOf } from "./_cut.ts";
import { fileLists } from "./_files.ts";
import { summarise } from "./_summary.ts";
import { askExtensions, cancelled, type Supplied } from "./_supplied.ts";
import { count, measure, type Sizes } from "./_tokens.ts";
import { keepRecentTokens } from "./settings.ts";

/** The entry that a compaction without kept messages names: state only, so nothing before it is in context. */
const NOTHING_KEPT = "compaction:nothing-kept";
/** Share of the room that kept messages may take; the rest is for the summary. */
const KEPT_SHARE = 0.8;
/** No summary is shorter: replacing less would pay for nothing. */
const MIN_REPLACED_TOKENS = 32;
const SHORT_CHARS = 140;

export interface Prepared {
  readonly model: Model;
  readonly sizes: Sizes;
  readonly plan: CompactionPlan;
  readonly replaced: readonly Item[];
  /** Index in `replaced` where a split turn begins; its length when the cut is between turns. */
  readonly splitAt: number;
  /** Tokens there is room for beside prompt and kept messages. */
  readonly room: number;
}

export interface Compacted {
  readonly result: CompactionResult;
  /** Estimated tokens in context now. */
  readonly tokensAfter: number;
}

export interface Request {
  readonly reason: CompactionReason;
  readonly customInstructions?: string | undefined;
  readonly signal: AbortSignal;
  /** Everything in context may be replaced: a prompt that is not in it comes next. */
  readonly followed?: boolean | undefined;
}

/**
 * Decides what is replaced. Asks nobody and changes nothing.
 * @throws {CommandError} with the texts of protocol-facts §1.7, or naming the sizes when no cut can help.
 */
export async function prepare(ctx: Context, request: Request): Promise<Prepared> {
  const { reason, customInstructions, signal } = request;
  const { conversation } = ctx;
  const { model } = conversation.selection;
  if (model === undefined) throw new CommandError("No model selected");
  const { log } = conversation;
  const sizes = await measure(ctx, model);
  const slices = new Slices();
  if (signal.aborted) throw cancelled();
  const entries = log.contextEntries();
  const previous = entries.find((entry) => entry.type === "compaction");
  if (slices.due) await slices.rest();
  const items = itemsOf(entries, sizes.scale);
  if (slices.due) await slices.rest();
  const room = roomFor(ctx, sizes, items, reason);
  const condense = reason !== "manual" && summaryTokens(previous?.summary ?? "") * sizes.scale > room.free / 2;
  if (!condense && (items.length === 0 || endsInCompaction(log))) {
    if (reason !== "manual") throw new CommandError(cannotFit(sizes, model, undefined));
    throw new CommandError(endsInCompaction(log) ? "Already compacted" : "Nothing to compact (session too small)");
  }
  const { followed = false } = request;
  // Whoever compacts by hand has no other way out.
  const cut = chooseCut(items, room, { force: reason === "overflow", all: followed || reason === "manual", followed });
  const at = cut.kind === "cut" ? cut.at : 0;
  // A summary that a larger model made may be what takes the room: then it is replaced alone.
  const worth = condense ? cut.kind !== "too large" : cut.kind === "cut" && tokensOf(items.slice(0, at)) >= MIN_REPLACED_TOKENS;
  if (!worth) {
    if (cut.kind !== "too large" && reason === "manual") throw new CommandError("Nothing to compact (session too small)");
    throw new CommandError(cannotFit(sizes, model, cut.kind === "too large" ? cut.tokens : undefined));
  }
  const replaced = items.slice(0, at);
  if (slices.due) await slices.rest();
  if (signal.aborted) throw cancelled();
  const splitAt = cut.kind === "cut" ? Math.min(cut.turnStart, at) : 0;
  const kept = tokensOf(items.slice(at));
  const plan: CompactionPlan = {
    conversation,
    reason,
    entries: replaced.map((item) => item.entry),
    turnPrefix: replaced.slice(splitAt).map((item) => item.entry),
    previousSummary: previous?.summary,
    firstKeptEntryId: items[at]?.entry.id,
    tokensBefore: sizes.total,
    customInstructions,
    details: fileLists(
      replaced.map((item) => item.message),
      previous?.details,
    ),
    signal,
  };
  return { model, sizes, plan, replaced, splitAt, room: Math.max(0, room.free - kept) };
}

function roomFor(ctx: Context, sizes: Sizes, items: readonly Item[], reason: CompactionReason) {
  const free = Math.max(0, Math.min(sizes.threshold, Number.MAX_SAFE_INTEGER) - sizes.prompt);
  const all = tokensOf(items);
  // After an overflow the estimates are known to be too low.
  const keep = Math.min(ctx.setting(keepRecentTokens), free / 2, reason === "overflow" ? all / 2 : all);
  return { free, keep, most: free * KEPT_SHARE };
}

function tokensOf(items: readonly Item[]): number {
  return items.reduce((sum, item) => sum + item.tokens, 0);
}

/** True when nothing was said since the last compaction. */
function endsInCompaction(log: SessionLog): boolean {
  for (let id = log.leafId; id !== null; id = log.parentOf(id)) {
    const entry = log.entry(id);
    if (entry === undefined) return false;
    if (entry.type === "compaction") return true;
    if (messageOf(entry) !== undefined) return false;
  }
  return false;
}

/** Why no compaction can help, with sizes. */
function cannotFit(sizes: Sizes, model: Model, newest: number | undefined): string {
  const messages =
    newest === undefined ? `all messages about ${count(sizes.messages)}` : `the newest message about ${count(newest)}`;
  return (
    `The context cannot be made to fit: system prompt and tools take about ${count(sizes.prompt)} tokens, ${messages}, ` +
    `and ${windowText(sizes, model)}`
  );
}

/** What the model takes, as far as it is known. */
export function windowText(sizes: Sizes, model: Model): string {
  const window = sizes.window > 1 ? `has a window of ${count(sizes.window)}` : "does not say how large its window is";
  return `${model.provider}/${model.id} ${window}`;
}

/**
 * Makes the summary and puts it into the log; on failure nothing has changed.
 * @throws {CommandError} cancelled. @throws {ProviderError} the summariser's failure.
 */
export async function execute(ctx: Context, prepared: Prepared): Promise<Compacted> {
  const { plan } = prepared;
  const { conversation, signal } = plan;
  let supplied: Supplied | undefined;
  try {
    supplied = await askExtensions(ctx, plan);
    return await carryOut(ctx, prepared, supplied);
  } catch (error) {
    const aborted = signal.aborted || (CommandError.is(error) && error.code === "cancelled");
    const { reason } = plan;
    const failure = { conversation, reason, error: errorMessage(error), aborted, fromExtension: supplied !== undefined };
    const told = ctx.hook(sessionCompactionFailed, failure);
    // Whoever aborted does not wait for what others do about it.
    if (!aborted) await told;
    throw error;
  }
}

async function carryOut(ctx: Context, prepared: Prepared, supplied: Supplied | undefined): Promise<Compacted> {
  const { plan } = prepared;
  const { conversation, signal } = plan;
  const summary = supplied?.summary ?? (await ownSummary(ctx, prepared));
  if (signal.aborted || conversation.signal.aborted) throw cancelled();
  const firstKept = supplied?.firstKeptEntryId ?? plan.firstKeptEntryId;
  checkPlace(conversation.log, firstKept ?? plan.entries.at(-1)?.id);
  const result: CompactionResult = {
    summary,
    ...shortened(supplied?.shortSummary ?? shortSummary(summary)),
    firstKeptEntryId: firstKept ?? arrivedSince(conversation.log, plan) ?? nothingKept(conversation.log),
    tokensBefore: plan.tokensBefore,
    details: supplied?.details ?? plan.details,
  };
  const entryId = store(ctx, { type: "compaction", ...result, ...(supplied === undefined ? {} : { fromExtension: true }) });
  conversation.reload();
  const { sizes } = prepared;
  const tokensAfter = Math.ceil(sizes.prompt + conversation.log.contextSize.estimated * sizes.scale);
  const done = { conversation, reason: plan.reason, result, entryId, fromExtension: supplied !== undefined };
  await untilAborted(ctx.hook(sessionCompacted, done), signal, 0);
  return { result, tokensAfter };
}

async function ownSummary(ctx: Context, { model, plan, replaced, splitAt, room, sizes }: Prepared): Promise<string> {
  const messages = replaced.map((item) => item.message);
  const summary = await summarise(ctx, {
    model,
    history: messages.slice(0, splitAt),
    turnPrefix: messages.slice(splitAt),
    previousSummary: plan.previousSummary,
    customInstructions: plan.customInstructions,
    files: plan.details,
    room,
    scale: sizes.scale,
    signal: plan.signal,
  });
  const before = summaryTokens(plan.previousSummary ?? "") + tokensOf(replaced) / sizes.scale;
  const after = summaryTokens(summary);
  if (after >= before) {
    throw new CommandError(
      `The summary (about ${count(after)} tokens) is not smaller than what it would replace (about ${count(before)})`,
    );
  }
  return summary;
}

function summaryTokens(summary: string): number {
  return summary === "" ? 0 : estimateTokens({ role: "compactionSummary", summary, tokensBefore: 0, timestamp: 0 });
}

/** The log may have moved to another branch while the model wrote. */
function checkPlace(log: SessionLog, id: string | undefined): void {
  if (id !== undefined && !log.path().some((entry) => entry.id === id))
    throw new CommandError("Compaction cancelled: the conversation moved to another branch", "cancelled");
}

/** The first message that came in while the model wrote, such as the record of a host's command: no summary stands for it. */
function arrivedSince(log: SessionLog, { entries }: CompactionPlan): string | undefined {
  const path = log.path();
  const replaced = entries.at(-1)?.id;
  const last = path.findLastIndex((entry) => (replaced === undefined ? entry.type === "compaction" : entry.id === replaced));
  return path.find((entry, index) => index > last && messageOf(entry) !== undefined)?.id;
}

function nothingKept(log: SessionLog): string {
  return log.append({ type: "custom", customType: NOTHING_KEPT }).id;
}

function store(ctx: Context, draft: Omit<CompactionEntry, "id" | "parentId" | "timestamp">): string {
  const { conversation } = ctx;
  try {
    return conversation.log.append(draft).id;
  } catch (error) {
    const { leafId } = conversation.log;
    const leaf = leafId === null ? undefined : conversation.log.entry(leafId);
    // An entry that could not be written is kept in memory and written later.
    if (leafId === null || leaf?.type !== "compaction" || leaf.summary !== draft.summary) throw error;
    conversation.emit(notice, { level: "error", message: errorMessage(error), source: "session-persistence" });
    return leafId;
  }
}

function shortSummary(summary: string): string | undefined {
  const line = summary.split("\n").find((each) => each.trim() !== "" && !each.startsWith("#"));
  const text = line?.replace(/^[-*\s]+/, "").trim();
  return text === undefined || text.length <= SHORT_CHARS ? text : `${text.slice(0, SHORT_CHARS - 1).trimEnd()}…`;
}

function shortened(text: string | undefined): { shortSummary?: string } {
  return text === undefined || text === "" ? {} : { shortSummary: text.toWellFormed() };
}
