// Notices a model that makes the same call again and again: after some identical turns it is told so, and again after as many.
import type { ToolCall } from "../../protocol/content.ts";

/** Identical turns in a row that bring a correction. */
export const REPEATS = 4;

export class LoopGuard {
  #last = "";
  #count = 0;

  /** Takes the calls of a turn; the text of a correction when it is time for one. */
  check(calls: readonly ToolCall[]): string | undefined {
    const print = JSON.stringify(calls.map((call) => [call.name, call.arguments]));
    this.#count = print === this.#last ? this.#count + 1 : 1;
    this.#last = print;
    if (this.#count % REPEATS !== 0) return undefined;
    const names = [...new Set(calls.map((call) => call.name))].join(", ");
    return `You made the same call of ${names} with the same arguments ${this.#count} times in a row. Repeating it gives nothing new: use the results you have, try something else, or say what is in the way.`;
  }
}
