// The end of one growing text, enough to find what spans deltas. The cost of a delta does not depend on what came before.

/** A match may begin this far back from a new delta. */
export const LOOK_BACK = 2048;
/** Kept in front of that, so that `^`, `\b` and look-behinds see what stands there. */
const CONTEXT = 256;
/** What a pattern may say of text that has not come yet. */
const LOOKS_AHEAD = /\$|\\[bB]|\(\?[=!]/;

export class StreamText {
  #text = "";
  /** Where matches may begin. */
  #from = 0;

  append(delta: string): void {
    if (this.#text.length > 2 * (LOOK_BACK + CONTEXT)) this.#text = this.#text.slice(-(LOOK_BACK + CONTEXT));
    this.#from = Math.max(0, this.#text.length - LOOK_BACK);
    this.#text += delta;
  }

  /** `isFinal`: nothing follows. Before that a match at the very end waits if the pattern looks ahead. */
  matches(pattern: RegExp, isFinal: boolean): boolean {
    pattern.lastIndex = this.#from;
    const found = pattern.exec(this.#text);
    if (found === null) return false;
    return isFinal || found.index + found[0].length < this.#text.length || !LOOKS_AHEAD.test(pattern.source);
  }

  /** First groups of all matches in reach. `pattern` has the flag `g`. */
  groups(pattern: RegExp): string[] {
    pattern.lastIndex = this.#from;
    const groups: string[] = [];
    for (let found = pattern.exec(this.#text); found !== null; found = pattern.exec(this.#text)) groups.push(found[1] ?? "");
    return groups;
  }
}

/** Turns the escapes of JSON strings into the characters they stand for, delta by delta. */
export class Unescaper {
  #rest = "";

  take(delta: string): string {
    const text = this.#rest + delta;
    this.#rest = "";
    if (!text.includes("\\")) return text;
    return text.replace(/\\(?:u[0-9a-fA-F]{4}|[^u])|\\(?:u[0-9a-fA-F]{0,3})?$/gs, (sequence) => {
      if (sequence.length === 6) return String.fromCharCode(Number.parseInt(sequence.slice(2), 16));
      if (sequence.length === 2 && sequence !== "\\u") return SIMPLE[sequence[1] ?? ""] ?? sequence.slice(1);
      this.#rest = sequence;
      return "";
    });
  }
}
const SIMPLE: Record<string, string> = { n: "\n", r: "\r", t: "\t", b: "\b", f: "\f" };
