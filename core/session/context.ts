// From a path of the tree to what the model sees, and the state that holds at its end (agent-semantics §1.3). Extended entry
// by entry while the path grows; built anew after a branch or a compaction.
import type { AgentMessage } from "../../protocol/message.ts";
import { messageOf } from "./convert.ts";
import { type CompactionEntry, modelOf, type SessionEntry } from "./entry.ts";
import { ContextSize } from "./tokens.ts";

const SLOT_PREFIX = "slot:";

/** The state that the entries of a path add up to. */
export interface PathState {
  /** From the last model change, else from the last assistant message. */
  readonly model: { readonly provider: string; readonly modelId: string } | undefined;
  /** As stored; undefined when the path never set one (which means off). */
  readonly thinkingLevel: string | undefined;
  /** Latest value of each slot by name. */
  readonly slots: ReadonlyMap<string, unknown>;
}

export class PathContext implements PathState {
  readonly #messages: AgentMessage[] = [];
  /** Tokens of the messages. */
  readonly size = new ContextSize();
  readonly #slots = new Map<string, unknown>();
  #chosen: { provider: string; modelId: string } | undefined;
  #inferred: { provider: string; modelId: string } | undefined;
  #thinkingLevel: string | undefined;

  /** @param lostParent what stands in for an entry that damage took: see `EntryTree.substituteOf`. */
  constructor(path: readonly SessionEntry[], lostParent: (id: string) => string | null | undefined) {
    for (const entry of path) this.#track(entry);
    for (const entry of inContext(path, lostParent)) {
      this.#push(entry);
    }
  }

  /** The same array as long as this context lives; it grows at its end only. */
  get messages(): readonly AgentMessage[] {
    return this.#messages;
  }
  get model(): { provider: string; modelId: string } | undefined {
    return this.#chosen ?? this.#inferred;
  }
  /** From the last model change only. */
  get chosenModel(): { provider: string; modelId: string } | undefined {
    return this.#chosen;
  }
  get thinkingLevel(): string | undefined {
    return this.#thinkingLevel;
  }
  get slots(): ReadonlyMap<string, unknown> {
    return this.#slots;
  }

  /** Takes the next entry of the path. False when the context must be built anew because the entry changes what came before. */
  extend(entry: SessionEntry): boolean {
    if (cuts(entry)) return false;
    this.#track(entry);
    this.#push(entry);
    return true;
  }

  #push(entry: SessionEntry): void {
    const message = messageOf(entry);
    if (message === undefined) return;
    this.#messages.push(message);
    this.size.add(message);
  }

  #track(entry: SessionEntry): void {
    switch (entry.type) {
      case "model_change":
        this.#chosen = modelOf(entry) ?? this.#chosen;
        break;
      case "thinking_level_change":
        if (typeof entry.thinkingLevel === "string") this.#thinkingLevel = entry.thinkingLevel;
        break;
      case "custom":
        if (entry.customType.startsWith(SLOT_PREFIX)) this.#slots.set(entry.customType.slice(SLOT_PREFIX.length), entry.data);
        break;
      case "message":
        this.#inferred = answeredBy(entry.message) ?? this.#inferred;
        break;
      default:
    }
  }
}

/** Files of other programs may name anything. */
function answeredBy(message: AgentMessage): { provider: string; modelId: string } | undefined {
  if (message.role !== "assistant") return undefined;
  const { provider, model }: { provider: unknown; model: unknown } = message;
  if (typeof provider !== "string" || typeof model !== "string" || provider === "" || model === "") return undefined;
  return { provider, modelId: model };
}

/** The `customType` under which a slot's value is stored. */
export function slotType(name: string): string {
  return `${SLOT_PREFIX}${name}`;
}

/** Entries that take earlier ones out of context. */
function cuts(entry: SessionEntry): entry is CompactionEntry | Extract<SessionEntry, { type: "reset_boundary" }> {
  return entry.type === "compaction" || entry.type === "reset_boundary";
}

/** The entries of a path that are in context: from the last cut on, with what a compaction kept. */
export function inContext(path: readonly SessionEntry[], lostParent: (id: string) => string | null | undefined): SessionEntry[] {
  const cutAt = path.findLastIndex(cuts);
  const cut = path[cutAt];
  if (cut === undefined) return [...path];
  const after = path.slice(cutAt + 1);
  if (cut.type !== "compaction") return after;
  const kept = path.slice(firstKept(path, cutAt, cut, lostParent), cutAt).filter((entry) => !cuts(entry));
  return [cut, ...kept, ...after];
}

/** Index of the first kept entry; if that entry was lost, of the one after where it stood. */
function firstKept(
  path: readonly SessionEntry[],
  cutAt: number,
  cut: CompactionEntry,
  lostParent: (id: string) => string | null | undefined,
): number {
  const from = path.findLastIndex((entry, index) => index < cutAt && entry.id === cut.firstKeptEntryId);
  if (from >= 0) return from;
  const substitute = lostParent(cut.firstKeptEntryId);
  if (substitute === undefined) return cutAt;
  if (substitute === null) return 0;
  const before = path.findLastIndex((entry, index) => index < cutAt && entry.id === substitute);
  return before >= 0 ? before + 1 : cutAt;
}
