// Folds the events of a provider into one assistant message. Text grows by appending, which the engine keeps as a rope: the cost
// of a delta does not depend on what came before. Snapshots are made only for frames that are sent.
import type { AssistantContent, ToolCall } from "../../protocol/content.ts";
import type { AssistantMessage, StopReason, Usage } from "../../protocol/message.ts";
import type { Model } from "../../protocol/model.ts";
import type { ProviderError } from "../kernel/errors.ts";
import type { ProviderEvent, TokenCounts } from "./provider.ts";

/** Arguments of a call that cannot be used: what arrived of them. */
export interface BrokenCall {
  readonly raw: string;
  /** `cut`: the answer ended inside them. `invalid`: they are complete and no JSON object. */
  readonly why: "cut" | "invalid";
}

/** `half` is the first half of a character whose other half comes with the next delta. */
type Block =
  | { type: "text"; text: string; half: string; signature: string | undefined }
  | { type: "thinking"; text: string; half: string; signature: string | undefined }
  | { type: "redactedThinking"; data: string }
  | {
      type: "toolCall";
      id: string;
      name: string;
      json: string;
      half: string;
      args: Record<string, unknown>;
      state: "open" | "complete" | "invalid";
    };

export interface DeltaStep {
  readonly kind: "delta";
  readonly type: "text_delta" | "thinking_delta" | "toolcall_delta";
  readonly index: number;
  readonly delta: string;
}
/** What an event means for the host. */
export type Step =
  | DeltaStep
  | { readonly kind: "start"; readonly type: "text_start" | "thinking_start" | "toolcall_start"; readonly index: number }
  | { readonly kind: "end"; readonly type: "text_end" | "thinking_end" | "toolcall_end"; readonly index: number };

export class Answer {
  readonly #model: Model;
  readonly #timestamp: number;
  readonly #blocks: Block[] = [];
  /** The provider's block index → ours. */
  readonly #places = new Map<number, number>();
  readonly #callIds = new Set<string>();
  #usage: Usage;
  #responseId: string | undefined;
  #size = 0;

  constructor(model: Model, timestamp: number) {
    this.#model = model;
    this.#timestamp = timestamp;
    this.#usage = priced(model, {});
  }

  /** Characters of content so far. */
  get size(): number {
    return this.#size;
  }
  get isEmpty(): boolean {
    return this.#blocks.every((block) => (block.type === "text" || block.type === "thinking") && block.text.trim() === "");
  }
  /** True when there is thinking and nothing else. */
  get isThinkingOnly(): boolean {
    return this.#blocks.every((block) => block.type !== "toolCall" && (block.type !== "text" || block.text.trim() === ""));
  }

  /** Takes one event in; returns what to tell the host, in order. */
  apply(event: ProviderEvent): Step[] {
    switch (event.type) {
      case "start":
        this.#responseId = event.responseId;
        return [];
      case "text_start":
        return this.#open(event.index, { type: "text", text: "", half: "", signature: undefined }, "text_start");
      case "thinking_start":
        return this.#open(event.index, { type: "thinking", text: "", half: "", signature: undefined }, "thinking_start");
      case "toolcall_start": {
        const id = this.#callId(event.id);
        return this.#open(
          event.index,
          { type: "toolCall", id, name: event.name, json: "", half: "", args: {}, state: "open" },
          "toolcall_start",
        );
      }
      case "redacted_thinking":
        this.#open(event.index, { type: "redactedThinking", data: event.data }, "thinking_start");
        return [];
      case "text_delta":
      case "thinking_delta":
        return this.#grow(event);
      case "toolcall_delta":
        return this.#growCall(event);
      case "text_end":
      case "thinking_end":
        return this.#endText(event);
      case "toolcall_end":
        return this.#endCall(event);
      case "usage":
        this.#usage = priced(this.#model, { ...this.#usage, ...defined(event.usage) });
        return [];
      default:
        return [];
    }
  }

  /** The message so far, or its envelope with empty content. */
  snapshot(content: "full" | "empty" = "full"): AssistantMessage {
    return this.#message("stop", content === "full" ? this.#blocks.map(toContent) : []);
  }

  /** A block as the host gets it at its end. */
  contentAt(index: number): AssistantContent | undefined {
    const block = this.#blocks[index];
    return block && toContent(block);
  }

  /** The final message. Incomplete calls stay in answers that get results for them and leave failed and aborted ones. */
  finish(
    stopReason: StopReason,
    change: { errorMessage?: string; errorStatus?: number; now: number; ttft?: number },
  ): AssistantMessage {
    const failed = stopReason === "error" || stopReason === "aborted";
    const kept = this.#blocks.filter((block) => {
      if (block.type === "toolCall") return !failed || block.state === "complete";
      // Signed thinking counts without its text as well: services that keep the text back want the signature back.
      return block.type === "redactedThinking" || block.text !== "" || (block.type === "thinking" && Boolean(block.signature));
    });
    return {
      ...this.#message(stopReason, kept.map(toContent)),
      ...(change.errorMessage === undefined ? {} : { errorMessage: change.errorMessage }),
      ...(change.errorStatus === undefined ? {} : { errorStatus: change.errorStatus }),
      duration: Math.max(0, change.now - this.#timestamp),
      ...(change.ttft === undefined ? {} : { ttft: change.ttft }),
    };
  }

  /** Calls whose arguments cannot be used, by call id. */
  broken(): Map<string, BrokenCall> {
    const broken = new Map<string, BrokenCall>();
    for (const block of this.#blocks) {
      if (block.type !== "toolCall" || block.state === "complete") continue;
      broken.set(block.id, { raw: block.json, why: block.state === "open" ? "cut" : "invalid" });
    }
    return broken;
  }

  #message(stopReason: StopReason, content: AssistantContent[]): AssistantMessage {
    return {
      role: "assistant",
      content,
      api: this.#model.api,
      provider: this.#model.provider,
      model: this.#model.id,
      usage: this.#usage,
      stopReason,
      timestamp: this.#timestamp,
      ...(this.#responseId === undefined ? {} : { responseId: this.#responseId }),
    };
  }

  #open<T extends "text_start" | "thinking_start" | "toolcall_start">(at: number, block: Block, type: T): Step[] {
    const index = this.#blocks.push(block) - 1;
    this.#places.set(at, index);
    return [{ kind: "start", type, index }];
  }

  #find(at: number): { block: Block; index: number } | undefined {
    const index = this.#places.get(at);
    const block = index === undefined ? undefined : this.#blocks[index];
    return index === undefined || block === undefined ? undefined : { block, index };
  }

  /** A delta without its start opens the block: some servers leave the start out. */
  #grow(event: { type: "text_delta" | "thinking_delta"; index: number; delta: string }): Step[] {
    const kind = event.type === "text_delta" ? "text" : "thinking";
    const steps: Step[] = [];
    let found = this.#find(event.index);
    if (found === undefined || found.block.type !== kind) {
      steps.push(...this.#open(event.index, { type: kind, text: "", half: "", signature: undefined }, `${kind}_start`));
      found = this.#find(event.index);
    }
    if (found === undefined || (found.block.type !== "text" && found.block.type !== "thinking")) return steps;
    const delta = wholeDelta(found.block, event.delta);
    if (delta === "") return steps;
    found.block.text += delta;
    this.#size += delta.length;
    steps.push({ kind: "delta", type: event.type, index: found.index, delta });
    return steps;
  }

  #growCall(event: { index: number; delta: string }): Step[] {
    const found = this.#find(event.index);
    if (found?.block.type !== "toolCall") return [];
    const delta = wholeDelta(found.block, event.delta);
    if (delta === "") return [];
    found.block.json += delta;
    this.#size += delta.length;
    return [{ kind: "delta", type: "toolcall_delta", index: found.index, delta }];
  }

  #endText(event: { type: "text_end" | "thinking_end"; index: number; signature?: string | undefined }): Step[] {
    const found = this.#find(event.index);
    if (found === undefined || (found.block.type !== "text" && found.block.type !== "thinking")) return [];
    const { block, index } = found;
    block.signature = event.signature;
    const end: Step = { kind: "end", type: event.type, index };
    if (block.half === "") return [end];
    // The other half never came.
    block.half = "";
    block.text += "\ufffd";
    this.#size += 1;
    return [{ kind: "delta", type: event.type === "text_end" ? "text_delta" : "thinking_delta", index, delta: "\ufffd" }, end];
  }

  #endCall(event: { index: number; arguments?: Record<string, unknown> | undefined }): Step[] {
    const found = this.#find(event.index);
    if (found?.block.type !== "toolCall") return [];
    const parsed = event.arguments ?? parseArguments(found.block.json + found.block.half);
    // Half of a surrogate pair (`\\ud83d` alone) is valid JSON, and refused by strict readers of frames, files and requests.
    const args = parsed && (wellFormed(parsed) as Record<string, unknown>);
    found.block.state = args === undefined ? "invalid" : "complete";
    if (args !== undefined) found.block.args = args;
    return [{ kind: "end", type: "toolcall_end", index: found.index }];
  }

  /** Ids pair calls with results: an empty or repeated one is replaced. */
  #callId(id: string): string {
    let unique = id;
    for (let n = 1; unique === "" || this.#callIds.has(unique); n++) unique = `${id === "" ? "call" : id}_${n}`;
    this.#callIds.add(unique);
    return unique;
  }
}

/** How a failed or given-up request looks when nothing was received. */
export function emptyAnswer(
  model: Model | undefined,
  stopReason: "error" | "aborted",
  change: { errorMessage: string; now: number; error?: ProviderError | undefined },
): AssistantMessage {
  const status = change.error?.status;
  return {
    role: "assistant",
    content: [],
    api: model?.api ?? "none",
    provider: model?.provider ?? "none",
    model: model?.id ?? "none",
    usage: model === undefined ? zeroUsage() : priced(model, {}),
    stopReason,
    timestamp: change.now,
    errorMessage: change.errorMessage,
    ...(status === undefined ? {} : { errorStatus: status }),
  };
}

/**
 * What of a delta can be told now: a character may be cut in two between deltas, and half of one is refused by strict readers of
 * frames. Halves that belong to nothing become U+FFFD.
 */
function wholeDelta(block: { half: string }, delta: string): string {
  const text = block.half + delta;
  const endsInHalf = (text.charCodeAt(text.length - 1) & 0xfc00) === 0xd800;
  const whole = endsInHalf ? text.slice(0, -1) : text;
  block.half = endsInHalf ? text.slice(-1) : "";
  return whole.isWellFormed() ? whole : whole.toWellFormed();
}

/** No content is no argument; undefined means it is no JSON object. */
function parseArguments(json: string): Record<string, unknown> | undefined {
  if (json.trim() === "") return {};
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** The same value when all its strings are whole; else a copy with U+FFFD for halves of characters. */
function wellFormed(value: unknown): unknown {
  if (typeof value === "string") return value.isWellFormed() ? value : value.toWellFormed();
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) {
    const mapped = value.map(wellFormed);
    return mapped.some((each, index) => each !== value[index]) ? mapped : value;
  }
  const entries = Object.entries(value);
  const mapped = entries.map(([key, inner]) => [key.toWellFormed(), wellFormed(inner)] as const);
  const changed = mapped.some(([key, inner], index) => key !== entries[index]?.[0] || inner !== entries[index]?.[1]);
  return changed ? Object.fromEntries(mapped) : value;
}

function toContent(block: Block): AssistantContent {
  switch (block.type) {
    case "text":
      return { type: "text", text: block.text, ...(block.signature === undefined ? {} : { textSignature: block.signature }) };
    case "thinking":
      return {
        type: "thinking",
        thinking: block.text,
        ...(block.signature === undefined ? {} : { thinkingSignature: block.signature }),
      };
    case "redactedThinking":
      return { type: "redactedThinking", data: block.data };
    case "toolCall":
      return { type: "toolCall", id: block.id, name: block.name, arguments: block.args } satisfies ToolCall;
  }
}

function zeroUsage(): Usage {
  return {
    input: 0,
    output: 0,
    cacheRead: 0,
    cacheWrite: 0,
    totalTokens: 0,
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
  };
}

/** Token counts with their price in US dollars; prices are per million tokens. */
export function priced(model: Model, counts: Partial<TokenCounts>): Usage {
  const { input = 0, output = 0, cacheRead = 0, cacheWrite = 0, reasoningTokens } = counts;
  const cost = {
    input: (input * model.cost.input) / 1e6,
    output: (output * model.cost.output) / 1e6,
    cacheRead: (cacheRead * model.cost.cacheRead) / 1e6,
    cacheWrite: (cacheWrite * model.cost.cacheWrite) / 1e6,
  };
  return {
    input,
    output,
    cacheRead,
    cacheWrite,
    totalTokens: input + output + cacheRead + cacheWrite,
    ...(reasoningTokens === undefined ? {} : { reasoningTokens }),
    cost: { ...cost, total: cost.input + cost.output + cost.cacheRead + cost.cacheWrite },
  };
}

function defined<T extends object>(value: T): Partial<T> {
  return Object.fromEntries(Object.entries(value).filter(([, field]) => field !== undefined)) as Partial<T>;
}
