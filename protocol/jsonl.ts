// Lines of JSON, both ends. Splits on byte 0A only: U+2028, U+2029 and U+0085 are legal inside JSON strings, so no reader that
// knows about "lines of text" may be used here.
import { isUtf8 } from "node:buffer";
import { MAX_REASSEMBLED_FRAME_BYTES } from "./limits.ts";

/** Why a line was not delivered. `bytes` is the length seen so far; an over-long line is reported before its end is known. */
export interface LineProblem {
  readonly kind: "too_large" | "invalid_utf8";
  readonly message: string;
  readonly bytes: number;
}

export interface LineSplitterOptions {
  /** A line without its `\n`, never with it. Must not throw: the rest of the chunk would be lost. */
  readonly onLine: (text: string) => void;
  /** The line is skipped; reading goes on with the next one. Must not throw. */
  readonly onProblem: (problem: LineProblem) => void;
  /** Longest line in bytes, `\n` not counted. Default 64 MiB. */
  readonly maxLineBytes?: number | undefined;
}

const LF = 0x0a;
const CR = 0x0d;
const BOM = 0xfeff;
const OPENING_BRACE = 0x7b;

/**
 * Turns a byte stream into lines. A trailing CR and a leading BOM are dropped, lines of white space are skipped, invalid UTF-8
 * makes one line a problem. Bytes of an unfinished line are kept as a list and joined once, at its end, so that a line of n
 * bytes costs O(n) however it arrives.
 */
export class LineSplitter {
  readonly #onLine: (text: string) => void;
  readonly #onProblem: (problem: LineProblem) => void;
  readonly #max: number;
  #parts: Buffer[] = [];
  #kept = 0;
  #skipping = false;

  constructor(options: LineSplitterOptions) {
    this.#onLine = options.onLine;
    this.#onProblem = options.onProblem;
    this.#max = options.maxLineBytes ?? MAX_REASSEMBLED_FRAME_BYTES;
  }

  /** Bytes of the unfinished line held in memory. */
  get pendingBytes(): number {
    return this.#kept;
  }

  /** Takes the next bytes of the stream. The chunk must not be changed afterwards. */
  push(chunk: Uint8Array): void {
    const bytes = Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    let start = 0;
    for (let at = bytes.indexOf(LF); at !== -1; at = bytes.indexOf(LF, start)) {
      const from = start;
      start = at + 1;
      this.#finish(bytes, from, at);
    }
    if (start < bytes.length) this.#keep(start === 0 ? bytes : bytes.subarray(start));
  }

  /** The stream is over: a last line without `\n` counts. The splitter can be used again afterwards. */
  end(): void {
    this.#finish(Buffer.alloc(0), 0, 0);
  }

  #finish(bytes: Buffer, from: number, to: number): void {
    if (this.#skipping) {
      this.#skipping = false;
      return;
    }
    if (this.#kept + (to - from) > this.#max) {
      this.#reportTooLarge(this.#kept + (to - from));
      return;
    }
    if (this.#kept === 0) {
      this.#deliver(bytes, from, to);
      return;
    }
    const parts = this.#parts;
    parts.push(bytes.subarray(from, to));
    const line = Buffer.concat(parts, this.#kept + (to - from));
    this.#forget();
    this.#deliver(line, 0, line.length);
  }

  #keep(part: Buffer): void {
    if (this.#skipping) return;
    if (this.#kept + part.length > this.#max) {
      this.#reportTooLarge(this.#kept + part.length);
      this.#skipping = true;
      return;
    }
    this.#parts.push(part);
    this.#kept += part.length;
  }

  #forget(): void {
    this.#parts = [];
    this.#kept = 0;
  }

  #reportTooLarge(bytes: number): void {
    this.#forget();
    this.#onProblem({ kind: "too_large", message: `Line exceeds the limit of ${this.#max} bytes; it was skipped`, bytes });
  }

  #deliver(bytes: Buffer, from: number, end: number): void {
    const to = end > from && bytes[end - 1] === CR ? end - 1 : end;
    if (to === from) return;
    let text = bytes.toString("utf8", from, to);
    // Decoding writes U+FFFD for bytes that are no UTF-8, so only a line that holds one needs the strict check.
    if (text.includes("\ufffd") && !isUtf8(bytes.subarray(from, to))) {
      this.#onProblem({ kind: "invalid_utf8", message: "Line is not valid UTF-8; it was skipped", bytes: to - from });
      return;
    }
    if (text.charCodeAt(0) === BOM) text = text.slice(1);
    if (text.charCodeAt(0) !== OPENING_BRACE && text.trim() === "") return;
    this.#onLine(text);
  }
}
