// One answer of the model: drives the provider's stream, tells the host, and ends in exactly one final message. Never throws.
import type { AssistantContent } from "../../protocol/content.ts";
import type { AssistantMessage } from "../../protocol/message.ts";
import type { Model } from "../../protocol/model.ts";
import { errorMessage, ProviderError } from "../kernel/errors.ts";
import { Answer, type BrokenCall, type Step } from "./answer.ts";
import type { MessageUpdateMode } from "./conversation-types.ts";
import type { ProviderEvent } from "./provider.ts";
import { maskedFailure } from "./secrets.ts";
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
  /** Masks secrets: a service echoes what it was sent, and a provider of an extension says what it likes. */
  redact?: ((text: string) => string) | undefined;
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
  if (failure !== undefined && port.redact !== undefined) failure = maskedFailure(failure, port.redact);
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

/** Steps of an answer that are kept back while there is nothing to see in it. */
const MAX_HELD = 64;

interface Update {
  readonly message: AssistantMessage;
  readonly event: Record<string, unknown> & { type: string };
}

/**
 * Turns steps into frames. As long as an answer is blank nothing is told: one that stays so is asked for again, unseen
 * (agent-semantics §2.5), and services open their blocks before they know.
 */
class Teller {
  readonly #port: StreamPort;
  readonly #answer: Answer;
  readonly #merger: UpdateMerger;
  #held: Update[] = [];
  #partial: AssistantMessage | undefined;
  started = false;
  /** When the first content arrived, in Unix milliseconds. */
  firstAt: number | undefined;

  constructor(port: StreamPort, answer: Answer) {
    this.#port = port;
    this.#answer = answer;
    this.#merger = new UpdateMerger({
      send: (step) => this.#send(this.#updateOf(this.#eventOf(step))),
      snapshotSize: () => (port.mode() === "delta" ? 0 : answer.size),
      congested: () => port.congested(),
      onDrain: (listener) => port.onDrain(listener),
    });
  }

  tell(steps: readonly Step[]): void {
    if (!this.started && this.#answer.isEmpty && this.#held.length < MAX_HELD) {
      for (const step of steps) this.#held.push(this.#updateOf(this.#eventOf(step)));
      return;
    }
    if (steps.length > 0) this.#start();
    for (const step of steps) {
      if (step.kind === "delta") {
        this.#merger.add(step);
        continue;
      }
      this.#merger.flush();
      this.#send(this.#updateOf(this.#eventOf(step)));
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
    for (const update of this.#held.splice(0)) this.#send(update);
  }

  #eventOf(step: Step): Update["event"] {
    const event = { type: step.type, contentIndex: step.index, partial: this.#envelope() };
    if (step.kind === "delta") return { ...event, delta: step.delta };
    if (step.kind === "start") return event;
    const block = this.#answer.contentAt(step.index);
    if (block?.type === "toolCall") return { ...event, toolCall: block };
    return { ...event, content: block?.type === "thinking" ? block.thinking : block?.type === "text" ? block.text : "" };
  }

  #updateOf(event: Update["event"]): Update {
    return { message: this.#answer.snapshot(this.#port.mode() === "delta" ? "empty" : "full"), event };
  }

  #send({ message, event }: Update): void {
    this.#port.messageUpdate(message, event);
  }

  /** Role and required fields; the text stands once, in `message`. */
  #envelope(): AssistantMessage {
    this.#partial ??= this.#answer.snapshot("empty");
    return this.#partial;
  }
}
