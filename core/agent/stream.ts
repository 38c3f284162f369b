// One answer of the model: drives the provider's stream, tells the host, and ends in exactly one final message. Never throws.
import type { AssistantContent } from "../../protocol/content.ts";
import type { AssistantMessage } from "../../protocol/message.ts";
import type { Model } from "../../protocol/model.ts";
import { errorMessage, ProviderError } from "../kernel/errors.ts";
import { Answer, type BrokenCall, type Step } from "./answer.ts";
import type { MessageUpdateMode } from "./conversation-types.ts";
import type { ProviderEvent } from "./provider.ts";
import { UpdateMerger } from "./updates.ts";

/** What the stream tells and asks the outside. */
export interface StreamPort {
  readonly model: Model;
  readonly signal: AbortSignal;
  /** Unix milliseconds. */
  now(): number;
  mode(): MessageUpdateMode;
  congested(): boolean;
  onDrain(listener: () => void): () => void;
  messageStart(message: AssistantMessage): void;
  messageUpdate(message: AssistantMessage, event: Record<string, unknown> & { type: string }): void;
  /** Told of every step after the host; may abort `signal`. */
  watch?: ((steps: readonly Step[], contentAt: (index: number) => AssistantContent | undefined) => void) | undefined;
}

export interface StreamResult {
  readonly message: AssistantMessage;
  /** False when nothing was told to the host: the caller sends message_start as well. */
  readonly started: boolean;
  readonly outcome: "done" | "failed" | "aborted";
  readonly error: ProviderError | undefined;
  readonly broken: ReadonlyMap<string, BrokenCall>;
  readonly isEmpty: boolean;
  readonly isThinkingOnly: boolean;
}

/** How long events may be folded without letting timers and stdin have their turn. */
const SLICE_MS = 10;

/** Why an aborted message ended, for `errorMessage`. */
export function abortReason(signal: AbortSignal): string {
  const reason: unknown = signal.reason;
  if (reason instanceof Error && reason.message !== "") return reason.message;
  return typeof reason === "string" && reason !== "" ? reason : "Interrupted by user";
}

export async function streamAnswer(port: StreamPort, open: () => AsyncIterable<ProviderEvent>): Promise<StreamResult> {
  const startedAt = port.now();
  const answer = new Answer(port.model, startedAt);
  const teller = new Teller(port, answer);
  let end: ProviderEvent | undefined;
  let failure: ProviderError | undefined;
  try {
    end = await consume(open(), port.signal, (event) => {
      const steps = answer.apply(event);
      teller.tell(steps);
      port.watch?.(steps, (index) => answer.contentAt(index));
    });
  } catch (error) {
    failure = ProviderError.is(error) ? error : new ProviderError(errorMessage(error), "fatal", { cause: error });
  }
  teller.close();
  const times = { now: port.now(), ...(teller.firstAt === undefined ? {} : { ttft: Math.max(0, teller.firstAt - startedAt) }) };
  const broken = answer.broken();
  const shared = { started: teller.started, broken, isEmpty: answer.isEmpty, isThinkingOnly: answer.isThinkingOnly };
  if (port.signal.aborted) {
    const message = answer.finish("aborted", { errorMessage: abortReason(port.signal), ...times });
    return { ...shared, message, outcome: "aborted", error: undefined };
  }
  failure ??= failureOf(end, broken);
  if (failure !== undefined) {
    const status = failure.status === undefined ? {} : { errorStatus: failure.status };
    const message = answer.finish("error", { errorMessage: failure.message, ...status, ...times });
    return { ...shared, message, outcome: "failed", error: failure };
  }
  const stopReason = end?.type === "done" ? end.stopReason : "stop";
  return { ...shared, message: answer.finish(stopReason, times), outcome: "done", error: undefined };
}

/** A stream that ends without `done`, or inside a call, was cut: its calls never run (public-bugs 20). */
function failureOf(end: ProviderEvent | undefined, broken: ReadonlyMap<string, BrokenCall>): ProviderError | undefined {
  if (end?.type === "error") {
    // Nobody here aborted: the service or the line did, so it may be asked again (public-bugs 9, part D).
    return end.error.kind === "aborted"
      ? new ProviderError(end.error.message, "retryable", { status: end.error.status, retryAfterMs: end.error.retryAfterMs })
      : end.error;
  }
  if (end?.type !== "done") return new ProviderError("The model's answer ended before it was complete", "retryable");
  const cut = [...broken.values()].some((call) => call.why === "cut");
  if (cut && end.stopReason !== "length") return new ProviderError("The model's answer ended inside a tool call", "retryable");
  return undefined;
}

/**
 * Reads events until the last one. Gives up at once when `signal` aborts, whatever the provider does.
 * @throws what the provider throws.
 */
async function consume(
  events: AsyncIterable<ProviderEvent>,
  signal: AbortSignal,
  take: (event: ProviderEvent) => void,
): Promise<ProviderEvent | undefined> {
  const iterator = events[Symbol.asyncIterator]();
  // One abort listener for the whole stream: racing every step against one promise would keep a reaction per delta.
  let wake: (() => void) | undefined;
  const onAbort = () => wake?.();
  signal.addEventListener("abort", onAbort);
  let sliceStart = performance.now();
  let last: ProviderEvent | undefined;
  try {
    while (!signal.aborted) {
      const step = await new Promise<IteratorResult<ProviderEvent> | undefined>((resolve, reject) => {
        wake = () => resolve(undefined);
        iterator.next().then(resolve, reject);
      });
      if (step === undefined || step.done === true) return last;
      last = step.value;
      if (last.type === "done" || last.type === "error") return last;
      take(last);
      if (performance.now() - sliceStart > SLICE_MS) {
        await new Promise((resolve) => setImmediate(resolve));
        sliceStart = performance.now();
      }
    }
    return last;
  } finally {
    signal.removeEventListener("abort", onAbort);
    // Not awaited: a generator that hangs in its own clean-up must not hold the run.
    iterator.return?.(undefined)?.then(undefined, () => {});
  }
}

/** Turns steps into frames. */
class Teller {
  readonly #port: StreamPort;
  readonly #answer: Answer;
  readonly #merger: UpdateMerger;
  #partial: AssistantMessage | undefined;
  started = false;
  /** When the first content arrived, in Unix milliseconds. */
  firstAt: number | undefined;

  constructor(port: StreamPort, answer: Answer) {
    this.#port = port;
    this.#answer = answer;
    this.#merger = new UpdateMerger({
      send: (step) => this.#update({ type: step.type, contentIndex: step.index, delta: step.delta, partial: this.#envelope() }),
      snapshotSize: () => (port.mode() === "delta" ? 0 : answer.size),
      congested: () => port.congested(),
      onDrain: (listener) => port.onDrain(listener),
    });
  }

  tell(steps: readonly Step[]): void {
    for (const step of steps) {
      if (step.kind === "delta") {
        this.#merger.add(step);
        continue;
      }
      this.#start();
      this.#merger.flush();
      if (step.kind === "start") this.#update({ type: step.type, contentIndex: step.index, partial: this.#envelope() });
      else this.#end(step.type, step.index);
    }
  }

  /** Sends the rest and stops the timer. */
  close(): void {
    this.#merger.flush();
  }

  #start(): void {
    if (this.started) return;
    this.started = true;
    this.firstAt = this.#port.now();
    this.#port.messageStart(this.#answer.snapshot("empty"));
  }

  #end(type: "text_end" | "thinking_end" | "toolcall_end", index: number): void {
    const block = this.#answer.contentAt(index);
    const partial = this.#envelope();
    if (block?.type === "toolCall") this.#update({ type, contentIndex: index, toolCall: block, partial });
    else if (block?.type === "text") this.#update({ type, contentIndex: index, content: block.text, partial });
    else if (block?.type === "thinking") this.#update({ type, contentIndex: index, content: block.thinking, partial });
  }

  #update(event: Record<string, unknown> & { type: string }): void {
    this.#port.messageUpdate(this.#answer.snapshot(this.#port.mode() === "delta" ? "empty" : "full"), event);
  }

  /** Role and required fields; the text stands once, in `message`. */
  #envelope(): AssistantMessage {
    this.#partial ??= this.#answer.snapshot("empty");
    return this.#partial;
  }
}
