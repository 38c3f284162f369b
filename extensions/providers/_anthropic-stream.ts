// Reads the events of one answer of the Messages API. A tool call ends only when its arguments are whole: a call that the stream
// or the output limit cut stays open, and is therefore never run (public-bugs 20).
import type { Messages } from "@anthropic-ai/sdk/resources/messages";
import { ProviderError, type ProviderEvent, type TokenCounts } from "mortise/extension";
import { argumentText, callId, parseArguments, type Renaming } from "./_content.ts";

type Wire = Messages.RawMessageStreamEvent;

type Block =
  | { type: "text"; index: number }
  | { type: "thinking"; index: number; signature: string }
  | { type: "toolcall"; index: number; name: string; json: string[] }
  | { type: "other" };

export class MessageReader {
  /** The service said that the message is complete: what still comes is no part of it. */
  #finished = false;
  readonly #names: Renaming;
  readonly #open = new Map<number, Block>();
  /** A call without arguments ends when something follows it: only then it is known that nothing was cut. */
  #pending: number | undefined;
  #count = 0;
  #started = false;
  #calls = 0;
  #stop: string | undefined;

  constructor(names: Renaming) {
    this.#names = names;
  }

  /** True when the stream may end: servers that forget the last event, or its blank line, have said why they stopped. */
  get mayEnd(): boolean {
    return this.#stop !== undefined;
  }

  /** The events that one event of the wire stands for. @throws {ProviderError} when it makes no sense. */
  *read(event: Wire): Generator<ProviderEvent> {
    if (this.#finished || typeof event !== "object" || event === null) return;
    switch (event.type) {
      case "message_start":
        if (this.#started) throw broken("started a second message in the middle of the first");
        this.#started = true;
        yield { type: "start", responseId: event.message?.id };
        yield { type: "usage", usage: counts(event.message?.usage) };
        return;
      case "content_block_start":
        yield* this.#settle();
        yield* this.#begin(event);
        return;
      case "content_block_delta":
        yield* this.#delta(event);
        return;
      case "content_block_stop":
        yield* this.#end(event.index);
        return;
      case "message_delta":
        this.#stop = event.delta?.stop_reason ?? this.#stop;
        if (this.#stop !== undefined && !isLength(this.#stop)) yield* this.#settle();
        yield { type: "usage", usage: counts(event.usage) };
        return;
      case "message_stop":
        this.#finished = true;
        return;
    }
    // Pings and event types that came later than this code say nothing about the answer.
  }

  *#begin({ index, content_block: start }: Messages.RawContentBlockStartEvent): Generator<ProviderEvent> {
    if (!this.#started) throw broken("sent content before the message began");
    if (start.type === "text") {
      const block = { type: "text" as const, index: this.#count++ };
      this.#open.set(index, block);
      yield { type: "text_start", index: block.index };
      if (start.text) yield { type: "text_delta", index: block.index, delta: start.text };
    } else if (start.type === "thinking") {
      const block = { type: "thinking" as const, index: this.#count++, signature: start.signature ?? "" };
      this.#open.set(index, block);
      yield { type: "thinking_start", index: block.index };
      if (start.thinking) yield { type: "thinking_delta", index: block.index, delta: start.thinking };
    } else if (start.type === "redacted_thinking") {
      this.#open.set(index, { type: "other" });
      yield { type: "redacted_thinking", index: this.#count++, data: start.data };
    } else if (start.type === "tool_use") {
      const block = { type: "toolcall" as const, index: this.#count++, name: this.#names.from(start.name), json: [] as string[] };
      this.#open.set(index, block);
      yield { type: "toolcall_start", index: block.index, id: callId(start.id), name: block.name };
      // Some compatible servers send the arguments with the start instead of as deltas.
      const delta = argumentText(start.input);
      if (delta !== "") {
        block.json.push(delta);
        yield { type: "toolcall_delta", index: block.index, delta };
      }
    } else this.#open.set(index, { type: "other" });
  }

  *#delta({ index, delta }: Messages.RawContentBlockDeltaEvent): Generator<ProviderEvent> {
    const block = this.#open.get(index);
    if (block === undefined) throw broken("continued a block that is not open");
    if (delta.type === "text_delta" && block.type === "text") yield { type: "text_delta", index: block.index, delta: delta.text };
    else if (delta.type === "thinking_delta" && block.type === "thinking") {
      yield { type: "thinking_delta", index: block.index, delta: delta.thinking };
    } else if (delta.type === "signature_delta" && block.type === "thinking") block.signature += delta.signature;
    else if (delta.type === "input_json_delta" && block.type === "toolcall") {
      const json = argumentText(delta.partial_json);
      if (json === "") return;
      block.json.push(json);
      yield { type: "toolcall_delta", index: block.index, delta: json };
    }
  }

  *#end(index: number): Generator<ProviderEvent> {
    const block = this.#open.get(index);
    if (block === undefined) throw broken("ended a block that is not open");
    if (block.type === "text") yield { type: "text_end", index: block.index };
    else if (block.type === "thinking")
      yield { type: "thinking_end", index: block.index, signature: block.signature || undefined };
    else if (block.type === "toolcall") {
      if (block.json.length === 0) {
        this.#pending = index;
        return;
      }
      const args = parseArguments(block.json.join(""));
      // Not whole: the output limit cuts in the middle of arguments and still closes the block. It stays open here.
      if (args === undefined) return;
      this.#calls++;
      yield { type: "toolcall_end", index: block.index, arguments: args };
    }
    this.#open.delete(index);
  }

  /** Ends the call that waited for proof of its emptiness. */
  *#settle(): Generator<ProviderEvent> {
    const block = this.#pending === undefined ? undefined : this.#open.get(this.#pending);
    if (this.#pending === undefined || block?.type !== "toolcall") return;
    this.#open.delete(this.#pending);
    this.#pending = undefined;
    this.#calls++;
    yield { type: "toolcall_end", index: block.index, arguments: {} };
  }

  /** The last event. @throws {ProviderError} when the message is complete by its own account but not in fact. */
  finish(): ProviderEvent {
    const stop = this.#stop;
    if (stop === undefined) throw broken("ended the message without a reason");
    if (stop === "refusal") throw new ProviderError("The model refused to answer this conversation", "fatal");
    if (isLength(stop)) return { type: "done", stopReason: "length" };
    const incomplete = [...this.#open.values()].find((block) => block.type === "toolcall");
    if (incomplete?.type === "toolcall")
      throw broken(`ended before the arguments of the call of "${incomplete.name}" were complete`);
    if (stop === "tool_use" && this.#calls === 0) throw broken("stopped for a tool without calling one");
    return { type: "done", stopReason: this.#calls > 0 ? "toolUse" : "stop" };
  }
}

function isLength(stop: string): boolean {
  return stop === "max_tokens" || stop === "model_context_window_exceeded";
}

function broken(what: string): ProviderError {
  return new ProviderError(`The service ${what}`, "retryable");
}

/** Only what the event names: the counts of the end complete those of the start. */
function counts(usage: Partial<Messages.Usage> | Partial<Messages.MessageDeltaUsage> | null | undefined): Partial<TokenCounts> {
  const result: Partial<TokenCounts> = {};
  if (usage === undefined || usage === null) return result;
  if (typeof usage.input_tokens === "number") result.input = usage.input_tokens;
  if (typeof usage.output_tokens === "number") result.output = usage.output_tokens;
  if (typeof usage.cache_read_input_tokens === "number") result.cacheRead = usage.cache_read_input_tokens;
  if (typeof usage.cache_creation_input_tokens === "number") result.cacheWrite = usage.cache_creation_input_tokens;
  const reasoning = usage.output_tokens_details?.thinking_tokens;
  if (typeof reasoning === "number") result.reasoningTokens = reasoning;
  return result;
}
