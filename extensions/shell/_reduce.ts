// Reduces a terminal stream to the text a person would see: escape sequences go, carriage returns and backspaces overwrite,
// other control characters vanish. One line is under edit at a time; cursor movement between lines is not followed.

/** A line under edit is committed in parts beyond this, so that one endless line costs bounded memory. */
const MAX_LINE = 16_384;
/** An escape sequence that has not ended after this is text whose escape character got lost. */
const MAX_ESCAPE = 4096;

const special = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/;
const token =
  /(?:\x1b\[|\x9b)([0-?]*)[ -/]*([@-~])|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)|\x1b[ -/]*[0-Z\\`-~]|\r\n|[\x00-\x1f\x7f-\x9f]|[^\x00-\x1f\x7f-\x9f]+/y;
/** The start of a sequence whose end may come with the next chunk. */
const unfinished = /^(?:(?:\x1b\[|\x9b)[0-?]*[ -/]*|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*\x1b?|\x1b[ -/]*)$/;

export class TerminalReducer {
  #text = "";
  /** Set while the cursor has left the end of the line: one entry a character. */
  #cells: string[] | undefined;
  #column = 0;
  #carry = "";

  /** Takes decoded text; returns what is final now: complete lines, or parts of very long ones. */
  push(chunk: string): string {
    const text = this.#carry + chunk;
    this.#carry = "";
    if (this.#cells !== undefined) return this.#edit(text);
    if (!special.test(text)) return this.#plain(text);
    // A terminal ends every line with CR LF: the way of nearly all output.
    const lines = text.replaceAll("\r\n", "\n");
    const isSplit = lines.endsWith("\r");
    const plain = isSplit ? lines.slice(0, -1) : lines;
    if (special.test(plain)) return this.#edit(text);
    // Whether this one ends a line is seen with the next chunk; without one it changes nothing.
    if (isSplit) this.#carry = "\r";
    return this.#plain(plain);
  }

  /** The line under edit. */
  get pending(): string {
    return this.#cells === undefined ? this.#text : this.#cells.join("");
  }

  #plain(text: string): string {
    const newline = text.lastIndexOf("\n");
    if (newline < 0) {
      this.#text += text;
      return this.#text.length > MAX_LINE ? this.#take() : "";
    }
    const done = this.#text + text.slice(0, newline + 1);
    this.#text = text.slice(newline + 1);
    return this.#text.length > MAX_LINE ? done + this.#take() : done;
  }

  #edit(text: string): string {
    const done: string[] = [];
    token.lastIndex = 0;
    while (token.lastIndex < text.length) {
      const at = token.lastIndex;
      const match = token.exec(text);
      const start = text[at];
      if ((start === "\x1b" || (start !== undefined && start >= "\x80" && start <= "\x9f")) && (match?.[0].length ?? 0) <= 1) {
        const rest = text.slice(at);
        if (rest.length <= MAX_ESCAPE && unfinished.test(rest)) {
          this.#carry = rest;
          break;
        }
      }
      if (match === null) {
        token.lastIndex = at + 1;
        continue;
      }
      const whole = match[0];
      if (whole === "\n" || whole === "\r\n") done.push(`${this.#take()}\n`);
      else if (match[2] !== undefined) this.#control(match[2], match[1] ?? "");
      else this.#write(whole);
      if ((this.#cells?.length ?? this.#text.length) > MAX_LINE) done.push(this.#take());
    }
    return done.join("");
  }

  #take(): string {
    const line = this.pending;
    this.#text = "";
    this.#cells = undefined;
    this.#column = 0;
    return line;
  }

  #write(text: string): void {
    const code = text.charCodeAt(0);
    if (code === 0x0d) this.#moveTo(0);
    else if (code === 0x08) this.#moveTo(this.#position() - 1);
    else if (code === 0x09) this.#put("\t");
    else if (code >= 0x20 && !(code >= 0x7f && code <= 0x9f)) this.#put(text);
  }

  #put(text: string): void {
    const cells = this.#cells;
    if (cells === undefined) {
      this.#text += text;
      return;
    }
    while (cells.length < this.#column) cells.push(" ");
    for (const character of text) cells[this.#column++] = character;
  }

  /** CSI sequences that change the line; all others only style. */
  #control(final: string, parameters: string): void {
    const count = Math.min(Number.parseInt(parameters, 10) || 0, MAX_LINE);
    if (final === "K") this.#erase(count);
    else if (final === "C") this.#moveTo(this.#position() + Math.max(1, count));
    else if (final === "D") this.#moveTo(this.#position() - Math.max(1, count));
    else if (final === "G") this.#moveTo(Math.max(1, count) - 1);
  }

  #erase(mode: number): void {
    const cells = this.#edited();
    if (mode === 0) cells.length = Math.min(cells.length, this.#column);
    else if (mode === 2) cells.length = 0;
    else cells.fill(" ", 0, Math.min(cells.length, this.#column + 1));
  }

  #position(): number {
    return this.#cells === undefined ? this.#edited().length : this.#column;
  }

  #moveTo(column: number): void {
    this.#edited();
    // Beyond the end nothing is written before the next character.
    this.#column = Math.min(Math.max(0, column), MAX_LINE);
  }

  #edited(): string[] {
    if (this.#cells === undefined) {
      this.#cells = Array.from(this.#text);
      this.#column = this.#cells.length;
    }
    return this.#cells;
  }
}
