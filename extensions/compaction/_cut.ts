// Where a context may be cut, and where it is. Pure: entries and sizes in, a cut out.
import { type AgentMessage, estimateTokens, messageOf, type SessionEntry } from "mortise/extension";

/** An entry that is in context, with its message. */
export interface Item {
  readonly entry: SessionEntry;
  readonly message: AgentMessage;
  /** Tokens, as the model counts them. */
  readonly tokens: number;
}

export interface Room {
  /** Tokens of newest messages to keep. */
  readonly keep: number;
  /** Tokens the kept messages may take at the very most. */
  readonly most: number;
}

export type Cut =
  /** Items before `at` are replaced; `at` is the number of items when nothing is kept. `turnStart` ≤ `at`: first item of a split turn. */
  | { readonly kind: "cut"; readonly at: number; readonly turnStart: number }
  /** Everything fits into what is to be kept. */
  | { readonly kind: "nothing" }
  /** What must be kept is larger than the room. */
  | { readonly kind: "too large"; readonly tokens: number };

/** The messages of the in-context entries, without the summary of an earlier compaction. */
export function itemsOf(entries: readonly SessionEntry[], scale: number): Item[] {
  return entries.flatMap((entry) => {
    const message = entry.type === "compaction" ? undefined : messageOf(entry);
    return message === undefined ? [] : [{ entry, message, tokens: Math.ceil(estimateTokens(message) * scale) }];
  });
}

/**
 * Indices before which the context may be cut: never at a result, never between a call and its result, whatever stands
 * between them. The number of items (keep nothing) is not among them.
 */
export function validCuts(items: readonly Item[]): number[] {
  const reach = new Map<string, number>();
  /** By index: how far the calls made there reach. */
  const last = items.map((_, index) => index);
  for (let index = items.length - 1; index >= 0; index--) {
    const message = items[index]?.message;
    if (message?.role === "toolResult" && !reach.has(message.toolCallId)) reach.set(message.toolCallId, index);
    if (message?.role !== "assistant") continue;
    for (const block of message.content) {
      if (block.type !== "toolCall") continue;
      last[index] = Math.max(last[index] ?? index, reach.get(block.id) ?? index);
      // An id that was used before belongs to its own call.
      reach.delete(block.id);
    }
  }
  const cuts: number[] = [];
  let held = -1;
  for (const [index, item] of items.entries()) {
    if (index > held && item.message.role !== "toolResult") cuts.push(index);
    held = Math.max(held, last[index] ?? index);
  }
  return cuts;
}

export interface CutRules {
  /** Something is replaced even if everything fits into `keep`: the service said that it is too much. */
  readonly force: boolean;
  /** A newest message that is too large to be kept may be replaced whoever said it. */
  readonly all: boolean;
  /** No turn goes on: another prompt comes next. */
  readonly followed: boolean;
}

export function chooseCut(items: readonly Item[], room: Room, { force, all, followed }: CutRules): Cut {
  const sizes = suffixSizes(items);
  const size = (index: number) => sizes[index] ?? 0;
  const cuts = validCuts(items);
  if (!force && size(0) <= room.keep) return { kind: "nothing" };
  const fitting = cuts.filter((index) => index > 0 && size(index) <= room.keep);
  const [earliest] = fitting;
  if (earliest !== undefined) {
    // A whole turn is worth more than a few more messages of the one before.
    const whole = fitting.find((index) => startsTurn(items, index));
    return cutAt(items, whole !== undefined && size(whole) >= room.keep / 2 ? whole : earliest);
  }
  const lastCut = cuts.at(-1);
  if (lastCut === undefined) return { kind: "nothing" };
  if (lastCut > 0 && size(lastCut) <= room.most) return cutAt(items, lastCut);
  // What the model said and what tools gave can be summed up; what the user said last cannot.
  if (items[lastCut]?.message.role === "assistant") return cutAt(items, items.length);
  if (all && size(lastCut) > room.most)
    return followed ? { kind: "cut", at: items.length, turnStart: items.length } : cutAt(items, items.length);
  return size(lastCut) > room.most ? { kind: "too large", tokens: size(lastCut) } : { kind: "nothing" };
}

function cutAt(items: readonly Item[], at: number): Cut {
  let turnStart = at;
  if (at === items.length || !startsTurn(items, at)) {
    turnStart = at - 1;
    while (turnStart > 0 && !startsTurn(items, turnStart)) turnStart--;
  }
  return { kind: "cut", at, turnStart: Math.max(0, turnStart) };
}

/** True for what a person, an extension or an earlier summary put in: the model and its tools follow it. */
function startsTurn(items: readonly Item[], index: number): boolean {
  const role = items[index]?.message.role;
  return role !== undefined && role !== "assistant" && role !== "toolResult";
}

/** By index: tokens from there to the end. */
function suffixSizes(items: readonly Item[]): number[] {
  const sizes = new Array<number>(items.length + 1).fill(0);
  for (let index = items.length - 1; index >= 0; index--) sizes[index] = (sizes[index + 1] ?? 0) + (items[index]?.tokens ?? 0);
  return sizes;
}
