// The tool calls of one answer: shared ones run together, an exclusive one alone. Ends are told as they come; the result
// messages enter the transcript in call order. Every call gets exactly one stored result, whatever happens.
import type { ToolCall } from "../../protocol/content.ts";
import type { ToolResult, ToolResultMessage } from "../../protocol/message.ts";
import type { BrokenCall } from "./answer.ts";
import { toolExecutionEnd, toolExecutionStart, toolExecutionUpdate } from "./events.ts";
import { toolProgress } from "./hook-points.ts";
import type { MessageQueue } from "./queue.ts";
import { truncatedText, unparsableText } from "./tool-arguments.ts";
import { type ExecutionPort, errorResult, executeTool, notExecuted, syntheticResult } from "./tool-execution.ts";
import { untilAborted } from "./until-aborted.ts";
import { UpdateThrottle } from "./update-throttle.ts";
import { unlimited } from "./work.ts";

export interface BatchPort extends ExecutionPort {
  /** The run's signal. */
  readonly signal: AbortSignal;
  readonly queue: MessageQueue;
  now(): number;
  /** Stores a result and tells the host: message_start and message_end. */
  store(message: ToolResultMessage): void;
}

const SKIPPED = "The call did not run; make it again if it is still needed.";

export interface BatchResult {
  /** In call order. */
  readonly results: ToolResultMessage[];
  /** Every call asked that the run end with this turn. */
  readonly endsRun: boolean;
}

/** Runs the calls of an answer. Never rejects. */
export async function runToolCalls(
  port: BatchPort,
  calls: readonly ToolCall[],
  broken: ReadonlyMap<string, BrokenCall>,
): Promise<BatchResult> {
  const batch = new Batch(port, calls);
  const running = new Set<Promise<void>>();
  for (const [index, call] of calls.entries()) {
    const unusable = broken.get(call.id);
    if (unusable !== undefined) {
      const text = unusable.why === "cut" ? truncatedText(call.name) : unparsableText(call.name, unusable.raw);
      batch.refuse(index, errorResult(text));
      continue;
    }
    const exclusive = concurrencyOf(port, call) === "exclusive";
    if (exclusive) await Promise.all(running);
    const instead = batch.insteadOf();
    if (instead !== undefined) {
      batch.refuse(index, instead);
      continue;
    }
    const work = batch.run(index).finally(() => running.delete(work));
    running.add(work);
    if (exclusive) await work;
  }
  await Promise.all(running);
  return { results: batch.messages(), endsRun: batch.endsRun };
}

/** Gives every call of a failed or aborted answer its result; none of them runs. */
export function closeToolCalls(port: BatchPort, calls: readonly ToolCall[], text: string, source: string): ToolResultMessage[] {
  const batch = new Batch(port, calls);
  for (const index of calls.keys()) batch.refuse(index, syntheticResult(text, source));
  return batch.messages();
}

/** A resolver that throws means exclusive: the careful answer. */
function concurrencyOf(port: BatchPort, call: ToolCall): "shared" | "exclusive" {
  const concurrency = port.find(call.name)?.definition.concurrency;
  if (typeof concurrency !== "function") return concurrency ?? "shared";
  try {
    return concurrency(call.arguments) === "shared" ? "shared" : "exclusive";
  } catch {
    return "exclusive";
  }
}

class Batch {
  readonly #port: BatchPort;
  readonly #calls: readonly ToolCall[];
  readonly #results: (ToolResultMessage | undefined)[];
  readonly #ending = new Set<number>();
  #stored = 0;
  /** Gates of one batch ask one after another, so that two dialogs never stand side by side. */
  #gateTurn: Promise<void> = Promise.resolve();

  constructor(port: BatchPort, calls: readonly ToolCall[]) {
    this.#port = port;
    this.#calls = calls;
    this.#results = calls.map(() => undefined);
  }

  /** What a call that has not started gets instead of running, if anything. */
  insteadOf(): ToolResult | undefined {
    if (this.#port.signal.aborted) return notExecuted(this.#port.signal);
    if (!this.#port.queue.interrupts) return undefined;
    const cause = this.#port.queue.steering[0]?.role === "user" ? "queued user message" : "pending system advisory";
    return syntheticResult(`Skipped due to ${cause}. ${SKIPPED}`, "steering");
  }

  /** Ends a call that does not run: start, end and result message. */
  refuse(index: number, result: ToolResult): void {
    const call = this.#calls[index];
    if (call === undefined) return;
    this.#tellStart(call, call.arguments);
    this.#end(index, call, result, true);
  }

  async run(index: number): Promise<void> {
    const call = this.#calls[index];
    if (call === undefined) return;
    const controller = unlimited(new AbortController());
    const stopListening = this.#linkAborts(call, controller);
    const throttle = new UpdateThrottle((partial, args) => this.#tellProgress(call, partial, args, controller.signal));
    let args: Record<string, unknown> = call.arguments;
    let passGate: (() => void) | undefined;
    const execution = await executeTool(
      this.#port,
      { id: call.id, name: call.name, args: call.arguments },
      {
        signal: controller.signal,
        started: (prepared) => {
          args = prepared;
          this.#tellStart(call, prepared);
        },
        beforeGates: async () => {
          const turn = this.#gateTurn;
          this.#gateTurn = new Promise((resolve) => {
            passGate = resolve;
          });
          await turn;
          return this.insteadOf();
        },
        gatesPassed: () => passGate?.(),
        update: (partial) => throttle.add(partial, args),
        endRun: () => void this.#ending.add(index),
      },
    );
    await untilAborted(throttle.close(), controller.signal, 0);
    stopListening();
    this.#end(index, call, execution.result, execution.isError);
  }

  /** Shows what a running call reports, as the hooks leave it; nothing after an abort. */
  #tellProgress(call: ToolCall, partial: ToolResult, args: Record<string, unknown>, signal: AbortSignal): void | Promise<void> {
    const { ctx, conversation } = this.#port;
    const { id: toolCallId, name: toolName } = call;
    const show = (partialResult: ToolResult) => {
      if (!signal.aborted) conversation.emit(toolExecutionUpdate, { toolCallId, toolName, args, partialResult });
    };
    if (!ctx.hasHooks(toolProgress)) return show(partial);
    return ctx.hook(toolProgress, { conversation, toolCallId, toolName, partial }).then((seen) => show(seen?.partial ?? partial));
  }

  get endsRun(): boolean {
    return this.#ending.size === this.#calls.length;
  }

  messages(): ToolResultMessage[] {
    return this.#results.filter((result) => result !== undefined);
  }

  /** The run's abort reaches the call; steering reaches it when the tool is a pure wait. */
  #linkAborts(call: ToolCall, controller: AbortController): () => void {
    const { signal, queue } = this.#port;
    const onAbort = () => controller.abort(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    const interruptible = this.#port.find(call.name)?.definition.interruptible === true;
    const stopSteering = interruptible
      ? queue.onSteer(() => {
          if (queue.interrupts) controller.abort("A user message arrived");
        })
      : undefined;
    return () => {
      signal.removeEventListener("abort", onAbort);
      stopSteering?.();
    };
  }

  #tellStart(call: ToolCall, args: Record<string, unknown>): void {
    const intent = call.intent === undefined ? {} : { intent: call.intent };
    this.#port.conversation.emit(toolExecutionStart, { toolCallId: call.id, toolName: call.name, args, ...intent });
  }

  #end(index: number, call: ToolCall, result: ToolResult, isError: boolean): void {
    this.#port.conversation.emit(toolExecutionEnd, { toolCallId: call.id, toolName: call.name, result, isError });
    this.#results[index] = {
      role: "toolResult",
      toolCallId: call.id,
      toolName: call.name,
      content: result.content,
      ...(result.details === undefined ? {} : { details: result.details }),
      isError,
      timestamp: this.#port.now(),
    };
    this.#storeReady();
  }

  /** Results wait for those of earlier calls, so that the transcript has call order. */
  #storeReady(): void {
    for (let next = this.#results[this.#stored]; next !== undefined; next = this.#results[this.#stored]) {
      this.#stored++;
      this.#port.store(next);
    }
  }
}
