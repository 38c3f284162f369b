// Reads the chunks of one chat completion. Chunks name no ends of blocks: a call ends when the service says why it stopped, and
// only when its arguments are whole (public-bugs 20). What servers of that language do differently is understood here, too.
import { ProviderError, type ProviderEvent } from "mortise/extension";
import type { ChatCompletionChunk } from "openai/resources/chat/completions";
import { argumentText, callId, parseArguments, type Renaming } from "./_content.ts";
import { FailureInBody } from "./_faults.ts";
import { Aside, contentParts, counts, failureOf } from "./_openai-oddities.ts";

interface Call {
  /** Undefined until the name is known: some servers send the id before. */
  index: number | undefined;
  readonly id: unknown;
  name: string;
  readonly json: string[];
}

/** A piece of a call as it comes: what the types promise does not hold everywhere. */
interface Piece {
  index?: unknown;
  id?: unknown;
  function?: { name?: unknown; arguments?: unknown } | null;
}

type Delta = Omit<ChatCompletionChunk.Choice.Delta, "tool_calls" | "content"> & {
  content?: unknown;
  reasoning_content?: unknown;
  reasoning?: unknown;
  tool_calls?: unknown;
};

export class CompletionReader {
  readonly #names: Renaming;
  readonly #pricesWrites: boolean;
  /** The text or thinking block that is open. */
  #block: { type: "text" | "thinking"; index: number } | undefined;
  readonly #calls: Call[] = [];
  readonly #byPlace = new Map<number, Call>();
  #count = 0;
  #started = false;
  #stop: string | undefined;
  #usage: unknown;

  constructor(names: Renaming, pricesWrites: boolean) {
    this.#names = names;
    this.#pricesWrites = pricesWrites;
  }

  /** True once the service said why it stopped; the counts may still follow. */
  get mayEnd(): boolean {
    return this.#stop !== undefined;
  }

  get hasContent(): boolean {
    return this.#count > 0;
  }

  /** The events that one chunk stands for. */
  *read(chunk: ChatCompletionChunk): Generator<ProviderEvent> {
    if (typeof chunk !== "object" || chunk === null) return;
    if (!this.#started) {
      this.#started = true;
      yield { type: "start", responseId: chunk.id || undefined };
    }
    if (chunk.usage) this.#usage = chunk.usage;
    const first = chunk.choices?.[0];
    const choice = first && (first.index || 0) !== 0 ? (chunk.choices.find(({ index }) => index === 0) ?? first) : first;
    // Servers that only report counts, or keep the line warm, send chunks without a choice.
    if (choice === undefined || choice.finish_reason) this.#lookAside(chunk);
    if (choice === undefined) return;
    // Servers that do not stream send the whole message at once.
    const delta: Delta = choice.delta ?? (choice as { message?: Delta }).message ?? {};
    const thought = delta.reasoning_content || delta.reasoning;
    if (typeof thought === "string" && thought !== "") yield* this.#write("thinking", thought);
    if (typeof delta.content === "string") {
      if (delta.content !== "") yield* this.#write("text", delta.content);
    } else for (const part of contentParts(delta.content)) yield* this.#write(part.type, part.text);
    if (typeof delta.refusal === "string" && delta.refusal !== "") yield* this.#write("text", delta.refusal);
    if (delta.tool_calls) for (const piece of [delta.tool_calls].flat()) yield* this.#call(piece as Piece | null);
    // The form before there were several calls.
    if (delta.function_call) yield* this.#call({ index: 0, function: delta.function_call });
    if (choice.finish_reason) this.#stop = choice.finish_reason;
  }

  /** The events after the last chunk. @throws {ProviderError} when the answer is not what its end says. */
  *finish(): Generator<ProviderEvent> {
    yield* this.#close();
    const stop = this.#stop ?? "";
    if (stop === "content_filter") throw new ProviderError("The service's content filter stopped the answer", "fatal");
    if (stop === "error") throw broken("reported an error as the end of the answer");
    if (stop === "insufficient_system_resource") throw broken("ran out of resources in the middle of the answer");
    let complete = 0;
    for (const call of this.#calls) {
      if (call.index === undefined) throw broken("continued a tool call that never began");
      const text = call.json.join("");
      // At the output limit no text at all may mean that all of it was cut.
      const args = stop === "length" && text.trim() === "" ? undefined : parseArguments(text);
      if (args !== undefined) {
        complete++;
        yield { type: "toolcall_end", index: call.index, arguments: args };
      } else if (stop !== "length") throw broken(`ended before the arguments of the call of "${call.name}" were complete`);
    }
    const usage = counts(this.#usage, this.#pricesWrites);
    if (usage) yield { type: "usage", usage };
    if (stop === "length") yield { type: "done", stopReason: "length" };
    else if (complete > 0) yield { type: "done", stopReason: "toolUse" };
    else if (stop === "tool_calls" || stop === "function_call") throw broken("stopped for a tool without calling one");
    else yield { type: "done", stopReason: "stop" };
  }

  /** Counts and failures in places of their own. @throws {FailureInBody} when the chunk reports a failure. */
  #lookAside(chunk: ChatCompletionChunk): void {
    const { success, data: aside } = Aside.safeParse(chunk);
    if (!success) return;
    const failure = failureOf(aside);
    if (failure !== undefined) throw new FailureInBody(failure);
    this.#usage = chunk.usage ?? aside.choices?.[0]?.usage ?? aside.x_groq?.usage ?? this.#usage;
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

  *#call(piece: Piece | null): Generator<ProviderEvent> {
    if (typeof piece !== "object" || piece === null) return;
    const name = typeof piece.function?.name === "string" ? piece.function.name : "";
    const delta = argumentText(piece.function?.arguments);
    const call = this.#continued(piece, name, delta) ?? this.#begin(piece);
    if (call.index !== undefined) {
      if (delta === "") return;
      call.json.push(delta);
      yield { type: "toolcall_delta", index: call.index, delta };
      return;
    }
    if (delta !== "") call.json.push(delta);
    if (name === "") return;
    yield* this.#close();
    call.name = this.#names.from(name);
    call.index = this.#count++;
    yield { type: "toolcall_start", index: call.index, id: callId(call.id), name: call.name };
    for (const text of call.json) yield { type: "toolcall_delta", index: call.index, delta: text };
  }

  #begin({ id, index }: Piece): Call {
    const call = { index: undefined, id, name: "", json: [] };
    this.#calls.push(call);
    if (typeof index === "number") this.#byPlace.set(index, call);
    return call;
  }

  /** The call that a piece goes on with; undefined when it begins another one. */
  #continued({ id, index }: Piece, name: string, delta: string): Call | undefined {
    const isNumbered = typeof index === "number";
    // Without a number the id tells whose piece it is, and without that it goes on with the last call.
    const unnumbered = () => (id ? this.#calls.findLast((each) => each.id === id) : this.#calls.at(-1));
    const call = isNumbered ? this.#byPlace.get(index) : unnumbered();
    if (call === undefined || name === "" || call.index === undefined) return call;
    // Some servers number every call 0, or number none: another id with a name is another call.
    if (id && call.id && id !== call.id) return undefined;
    // Others repeat the name, or name and id, in each piece of a call, and some give two calls the same id.
    if (isWhole(call)) return delta === "" && name === call.name ? call : undefined;
    const isSame = this.#names.from(name) === call.name && (isNumbered || Boolean(id));
    return isSame || call.json.length > 0 ? call : undefined;
  }
}

/** True when nothing can follow. The look at the end spares reading a long text again for each of its pieces. */
function isWhole({ json }: Call): boolean {
  return json.at(-1)?.trimEnd().endsWith("}") === true && parseArguments(json.join("")) !== undefined;
}

function broken(what: string): ProviderError {
  return new ProviderError(`The service ${what}`, "retryable");
}
