// Notices an answer that goes round in circles: the same words over and over, until the output limit (agent-semantics §2.5).
import type { DeveloperMessage } from "../../protocol/message.ts";
import type { AnswerDelta, AnswerWatch, Interruption } from "./answer-watch.ts";

/** Characters that have to be one passage, repeated. */
const STRETCH_CHARS = 8000;
/** Repeats that fit into the stretch at least. */
const MIN_REPEATS = 10;
const CHECK_EVERY_CHARS = 1000;
/** How long it has to go on. A long list of equal lines is written in less; a model that is caught goes on for minutes. */
const PATIENCE_MS = 20_000;

/** `errorMessage` of an answer that was cut off for it. */
export const REPEATED_TEXT = "Cut off: the same text was repeated over and over";

export class TextGuard implements AnswerWatch {
  readonly #now: () => number;
  #index = -1;
  #tail = "";
  #unchecked = 0;
  /** When the repetition was seen first. */
  #since: number | undefined;

  /** @param now Unix milliseconds. */
  constructor(now: () => number) {
    this.#now = now;
  }

  delta({ kind, index, delta }: AnswerDelta): Interruption | undefined {
    // A file that is written may well hold the same line a thousand times.
    if (kind === "tool") return undefined;
    if (index !== this.#index) this.#begin(index);
    // Not cut with every delta: joining is free, cutting copies.
    this.#tail += delta;
    this.#unchecked += delta.length;
    if (this.#unchecked < CHECK_EVERY_CHARS || this.#tail.length < STRETCH_CHARS) return undefined;
    this.#unchecked = 0;
    this.#tail = this.#tail.slice(-STRETCH_CHARS);
    if (!isRepeated(this.#tail)) {
      this.#since = undefined;
      return undefined;
    }
    this.#since ??= this.#now();
    if (this.#now() - this.#since < PATIENCE_MS) return undefined;
    return { reason: REPEATED_TEXT, keep: false, messages: [correction(this.#now())] };
  }

  #begin(index: number): void {
    this.#index = index;
    this.#tail = "";
    this.#unchecked = 0;
    this.#since = undefined;
  }
}

function correction(timestamp: number): DeveloperMessage {
  const text =
    "Your answer repeated the same text over and over and was cut off. Do not repeat it: take another way, or say what is in the way.";
  return { role: "developer", content: [{ type: "text", text }], timestamp, attribution: "agent" };
}

/** True when the text is one passage, repeated. By the border function: linear, and the passage may begin anywhere. */
function isRepeated(text: string): boolean {
  const borders = new Int32Array(text.length);
  let length = 0;
  for (let at = 1; at < text.length; at++) {
    while (length > 0 && text.charCodeAt(at) !== text.charCodeAt(length)) length = borders[length - 1] ?? 0;
    if (text.charCodeAt(at) === text.charCodeAt(length)) length++;
    borders[at] = length;
  }
  return text.length - length <= text.length / MIN_REPEATS;
}
