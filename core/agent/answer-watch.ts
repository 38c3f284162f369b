// Watching an answer of the model while it streams. A watch sees every delta once, synchronously, before the next one is read,
// and may cut the answer off: the connection is closed, the run itself goes on with the messages the watch gives.
import type { AssistantContent } from "../../protocol/content.ts";
import type { AgentMessage } from "../../protocol/message.ts";
import { errorMessage } from "../kernel/errors.ts";
import type { Step } from "./answer.ts";
import { abortError } from "./work.ts";

/** A piece of an answer. */
export type AnswerDelta =
  | { readonly kind: "text" | "thinking"; readonly index: number; readonly delta: string }
  /** `delta` is text of the call's arguments as JSON; the whole of them where the service sends no pieces. */
  | {
      readonly kind: "tool";
      readonly index: number;
      readonly delta: string;
      readonly toolCallId: string;
      readonly toolName: string;
    };

/** Cuts the answer off. It gets no results for its tool calls, because it loses them. */
export interface Interruption {
  /** `errorMessage` of the message that was cut off. */
  readonly reason: string;
  /** True to leave what was said in the context of the model; otherwise it stays in the file only. */
  readonly keep: boolean;
  /** What the run goes on with. */
  readonly messages: readonly AgentMessage[];
}

export interface AnswerWatch {
  /** Called in the order of the stream; must be quick. After a throw it is not called again for this answer. */
  delta(delta: AnswerDelta): Interruption | undefined;
}

/** The watches of one answer. */
export class AnswerWatches {
  readonly #controller = new AbortController();
  readonly #report: (error: unknown) => void;
  readonly #whole = new Set<number>();
  #watches: readonly AnswerWatch[];
  interruption: Interruption | undefined;
  /** Aborted by the run or by an interruption. */
  readonly signal: AbortSignal;

  constructor(watches: readonly AnswerWatch[], signal: AbortSignal, report: (error: unknown) => void) {
    this.#watches = watches;
    this.#report = report;
    this.signal = AbortSignal.any([signal, this.#controller.signal]);
  }

  see(steps: readonly Step[], contentAt: (index: number) => AssistantContent | undefined): void {
    for (const step of steps) {
      const delta = this.#deltaOf(step, contentAt);
      if (delta === undefined) continue;
      for (const watch of this.#watches) {
        if (this.interruption !== undefined) return;
        this.#ask(watch, delta);
      }
    }
  }

  #ask(watch: AnswerWatch, delta: AnswerDelta): void {
    try {
      this.interruption = watch.delta(delta);
    } catch (error) {
      this.#watches = this.#watches.filter((each) => each !== watch);
      this.#report(new Error(`A watch over the answer failed: ${errorMessage(error)}`, { cause: error }));
    }
    if (this.interruption !== undefined) this.#controller.abort(abortError(this.interruption.reason));
  }

  #deltaOf(step: Step, contentAt: (index: number) => AssistantContent | undefined): AnswerDelta | undefined {
    const { index } = step;
    if (step.kind === "delta" && step.type !== "toolcall_delta") {
      return { kind: step.type === "text_delta" ? "text" : "thinking", index, delta: step.delta };
    }
    const isEnd = step.kind === "end" && step.type === "toolcall_end" && !this.#whole.has(index);
    if (step.kind !== "delta" && !isEnd) return undefined;
    const call = contentAt(index);
    if (call?.type !== "toolCall") return undefined;
    this.#whole.add(index);
    const delta = step.kind === "delta" ? step.delta : JSON.stringify(call.arguments);
    return { kind: "tool", index, delta, toolCallId: call.id, toolName: call.name };
  }
}
