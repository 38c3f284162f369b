// Sizes: what the context, the prompt and the messages take, and how much there may be. All in tokens.
import type { Context, ConversationHandle, Model } from "mortise/extension";
import { blankedTokens } from "./_blanking.ts";
import { reserveTokens, thresholdPercent, thresholdTokens } from "./settings.ts";

const CHARS_PER_TOKEN = 4;
/** Share of the window that is kept free whatever the reserve says. */
const MIN_RESERVE_SHARE = 0.15;
/** A count below this share of the estimate is no count: some services report zero, or the output only. */
const PLAUSIBLE_SHARE = 0.25;

export interface Sizes {
  readonly window: number;
  /** Above this the context is compacted. */
  readonly threshold: number;
  /** System prompt and tool schemas. */
  readonly prompt: number;
  /** The messages in context, estimated. */
  readonly messages: number;
  /** Everything in context: as the service counted it where it did, else estimated. */
  readonly total: number;
  /** How many real tokens an estimated one stands for, 1 to 4. */
  readonly scale: number;
}

export async function measure(ctx: Context, model: Model): Promise<Sizes> {
  const { conversation } = ctx;
  const prompt = await promptTokens(conversation);
  const blanked = blankedTokens(conversation);
  const { estimated } = conversation.log.contextSize;
  const messages = estimated - blanked.estimated;
  const estimate = prompt + messages;
  const used = conversation.contextUsage()?.tokens ?? 0;
  const counted = used - blanked.counted;
  // Without an answer since the last compaction the count is an estimate of the messages alone.
  const total = used === estimated || counted < estimate * PLAUSIBLE_SHARE ? estimate : counted;
  const scale = messages === 0 ? 1 : Math.min(4, Math.max(1, (total - prompt) / messages));
  const window = model.contextWindow ?? 0;
  return { window, threshold: threshold(ctx, window), prompt, messages, total, scale };
}

async function promptTokens(conversation: ConversationHandle): Promise<number> {
  const blocks = await conversation.systemPrompt();
  const chars = blocks.reduce((sum, block) => sum + block.length, 0);
  return Math.ceil((chars + toolChars(conversation.toolSchemas())) / CHARS_PER_TOKEN);
}

/** Lengths of tool lists; the list is one object until something changes. */
const knownTools = new WeakMap<object, number>();

function toolChars(tools: ReturnType<ConversationHandle["toolSchemas"]>): number {
  let chars = knownTools.get(tools);
  if (chars === undefined) {
    chars = tools.length === 0 ? 0 : JSON.stringify(tools).length;
    knownTools.set(tools, chars);
  }
  return chars;
}

/** Agent-semantics §2.10: absolute, else a percentage, else the window less the reserve. Without a known window only the first. */
function threshold(ctx: Context, window: number): number {
  const absolute = ctx.setting(thresholdTokens);
  if (!(window > 1)) return absolute > 0 ? absolute : Number.POSITIVE_INFINITY;
  if (absolute > 0) return Math.min(absolute, window - 1);
  const percent = ctx.setting(thresholdPercent);
  if (percent >= 1) return Math.floor((window * percent) / 100);
  const share = Math.ceil(window * MIN_RESERVE_SHARE);
  const reserve = ctx.setting(reserveTokens);
  // A reserve that eats half of a small window would compact without end.
  return window - (reserve > window / 2 ? share : Math.max(share, reserve));
}

/** Tokens for people: `12,345`. */
export function count(tokens: number): string {
  return Math.round(tokens).toLocaleString("en-US");
}
