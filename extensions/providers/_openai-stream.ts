// Reads the chunks of one chat completion. Chunks name no ends of blocks: a call ends when the service says why it stopped, and
// only when its arguments are whole (public-bugs 20).
import { randomUUID } from "node:crypto";
import { ProviderError, type ProviderEvent, type TokenCounts } from "mortise/extension";
import type { ChatCompletionChunk } from "openai/resources/chat/completions";
import { parseArguments, type Renaming } from "./_content.ts";

interface Call {
  index: number;
  id: string | undefined;
  name: string;
  json: string[];
}

export class CompletionReader {
  readonly #names: Renaming;
  /** The text or thinking block that is open. */
  #block: { type: "text" | "thinking"; index: number } | undefined;
  readonly #calls: Call[] = [];
  readonly #byPlace = new Map<number, Call>();
  #count = 0;
  #started = false;
  #stop: string | undefined;
  #usage: Partial<TokenCounts> | undefined;

  constructor(names: Renaming) {
    this.#names = names;
  }

  /** True once the service said why it stopped; the counts may still follow. */
  get finished(): boolean {
    return this.#stop !== undefined;
  }

  /** The events that one chunk stands for. */
  *read(chunk: ChatCompletionChunk): Generator<ProviderEvent> {
    if (!this.#started) {
      this.#started = true;
      yield { type: "start", responseId: chunk.id || undefined };
    }
    if (chunk.usage) this.#usage = counts(chunk.usage);
    // Servers that only report counts, or keep the line warm, send chunks without a choice.
    const choice = chunk.choices?.[0];
    if (choice === undefined) return;
    const delta: ChatCompletionChunk.Choice.Delta & { reasoning_content?: unknown; reasoning?: unknown } = choice.delta ?? {};
    const thought = delta.reasoning_content ?? delta.reasoning;
    if (typeof thought === "string" && thought !== "") yield* this.#write("thinking", thought);
    if (typeof delta.content === "string" && delta.content !== "") yield* this.#write("text", delta.content);
    if (typeof delta.refusal === "string" && delta.refusal !== "") yield* this.#write("text", delta.refusal);
    for (const piece of delta.tool_calls ?? []) yield* this.#call(piece);
    if (choice.finish_reason) this.#stop = choice.finish_reason;
  }

  /** The events after the last chunk. @throws {ProviderError} when the answer is not what its end says. */
  *finish(): Generator<ProviderEvent> {
    yield* this.#close();
    const stop = this.#stop ?? "";
    if (stop === "content_filter") throw new ProviderError("The service's content filter stopped the answer", "fatal");
    if (stop === "error") throw broken("reported an error as the end of the answer");
    let complete = 0;
    for (const call of this.#calls) {
      const text = call.json.join("");
      // At the output limit no text at all may mean that all of it was cut.
      const args = stop === "length" && text.trim() === "" ? undefined : parseArguments(text);
      if (args !== undefined) {
        complete++;
        yield { type: "toolcall_end", index: call.index, arguments: args };
      } else if (stop !== "length") throw broken(`ended before the arguments of the call of "${call.name}" were complete`);
    }
    if (this.#usage) yield { type: "usage", usage: this.#usage };
    if (stop === "length") yield { type: "done", stopReason: "length" };
    else if (complete > 0) yield { type: "done", stopReason: "toolUse" };
    else if (stop === "tool_calls" || stop === "function_call") throw broken("stopped for a tool without calling one");
    else yield { type: "done", stopReason: "stop" };
  }

  *#write(type: "text" | "thinking", delta: string): Generator<ProviderEvent> {
    if (this.#block?.type !== type) {
      yield* this.#close();
      this.#block = { type, index: this.#count++ };
      yield { type: `${type}_start`, index: this.#block.index };
    }
    yield { type: `${type}_delta`, index: this.#block.index, delta };
  }

  *#close(): Generator<ProviderEvent> {
    if (this.#block === undefined) return;
    yield { type: `${this.#block.type}_end`, index: this.#block.index };
    this.#block = undefined;
  }

  *#call(piece: ChatCompletionChunk.Choice.Delta.ToolCall): Generator<ProviderEvent> {
    const place = typeof piece.index === "number" ? piece.index : this.#calls.length - (piece.function?.name ? 0 : 1);
    let call = this.#byPlace.get(place);
    // Some servers number every call 0: another id with a name is another call.
    const isNew = call === undefined || (piece.id && call.id && piece.id !== call.id && piece.function?.name);
    if (isNew) {
      const name = this.#names.from(piece.function?.name ?? "");
      if (name === "") throw broken("continued a tool call that never began");
      yield* this.#close();
      call = { index: this.#count++, id: piece.id || undefined, name, json: [] };
      this.#calls.push(call);
      this.#byPlace.set(place, call);
      yield { type: "toolcall_start", index: call.index, id: call.id ?? `call_${randomUUID()}`, name };
    }
    const delta = piece.function?.arguments;
    if (call === undefined || typeof delta !== "string" || delta === "") return;
    call.json.push(delta);
    yield { type: "toolcall_delta", index: call.index, delta };
  }
}

function broken(what: string): ProviderError {
  return new ProviderError(`The service ${what}`, "retryable");
}

function counts(usage: NonNullable<ChatCompletionChunk["usage"]>): Partial<TokenCounts> {
  const cacheRead = usage.prompt_tokens_details?.cached_tokens ?? 0;
  const reasoning = usage.completion_tokens_details?.reasoning_tokens;
  return {
    input: Math.max(0, (usage.prompt_tokens ?? 0) - cacheRead),
    output: usage.completion_tokens ?? 0,
    cacheRead,
    cacheWrite: 0,
    ...(typeof reasoning === "number" && { reasoningTokens: reasoning }),
  };
}
