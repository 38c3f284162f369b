// Reading a window of lines from a file of any size, and making its text safe to show.
import type { FileHandle } from "node:fs/promises";
import { MAX_BYTES, MAX_LINES, ToolError, type Truncation } from "mortise/extension";

export interface Window {
  text: string;
  /** First line shown, from 1; one past the last line when nothing is there. */
  first: number;
  lines: number;
  /** Lines of the file. */
  totalLines: number;
  totalBytes: number;
  truncatedBy: "lines" | "bytes" | null;
  /** A line alone is longer than the limit and shown in part. */
  partial: boolean;
}

const CHUNK = 64 * 1024;
const NEWLINE = 10;

/**
 * Lines `offset` … `offset + limit - 1` within the byte limit. Memory is bounded by the limit, whatever the file's size; the
 * whole file is read to count its lines.
 */
export async function readWindow(
  handle: FileHandle,
  range: { offset: number; limit: number },
  signal: AbortSignal,
): Promise<Window> {
  const buffer = Buffer.allocUnsafe(CHUNK);
  const collector = new LineCollector(range.offset, range.limit);
  let position = 0;
  for (;;) {
    signal.throwIfAborted();
    const { bytesRead } = await handle.read(buffer, 0, CHUNK, position);
    if (bytesRead === 0) break;
    position += bytesRead;
    collector.push(buffer.subarray(0, bytesRead));
  }
  return collector.end(position);
}

/** The same for text in memory. */
export function textWindow(text: string, range: { offset: number; limit: number }): Window {
  const collector = new LineCollector(range.offset, range.limit);
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += CHUNK) collector.push(bytes.subarray(at, at + CHUNK));
  return collector.end(bytes.length);
}

class LineCollector {
  readonly #first: number;
  readonly #limit: number;
  readonly #kept: Buffer[] = [];
  #keptBytes = 0;
  /** Bytes of complete lines in `#kept`. */
  #wholeBytes = 0;
  #wholeLines = 0;
  #line = 1;
  #lastByte = NEWLINE;
  #full: "lines" | "bytes" | undefined;

  constructor(first: number, limit: number) {
    this.#first = first;
    this.#limit = Math.min(limit, MAX_LINES);
  }

  push(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) {
      const newline = chunk.indexOf(NEWLINE, at);
      const end = newline < 0 ? chunk.length : newline + 1;
      if (this.#line >= this.#first && this.#full === undefined) this.#keep(chunk.subarray(at, end), newline >= 0);
      if (newline >= 0) this.#line++;
      at = end;
    }
    this.#lastByte = chunk[chunk.length - 1] ?? NEWLINE;
  }

  #keep(piece: Buffer, ends: boolean): void {
    if (this.#wholeLines === this.#limit) {
      this.#full = "lines";
      return;
    }
    const room = MAX_BYTES + 1 - this.#keptBytes;
    this.#kept.push(Buffer.from(piece.subarray(0, room)));
    this.#keptBytes += Math.min(piece.length, room);
    if (piece.length > room || this.#keptBytes > MAX_BYTES) {
      this.#full = "bytes";
    } else if (ends) {
      this.#wholeLines++;
      this.#wholeBytes = this.#keptBytes;
    }
  }

  end(totalBytes: number): Window {
    const totalLines = this.#lastByte === NEWLINE ? this.#line - 1 : this.#line;
    const all = Buffer.concat(this.#kept);
    const partial = this.#full === "bytes" && this.#wholeLines === 0;
    // Without a cut the last line may lack its newline.
    const cut = this.#full === "bytes" && !partial ? this.#wholeBytes : all.length;
    const bytes = partial ? wholeCharacters(all.subarray(0, MAX_BYTES)) : all.subarray(0, cut);
    const unfinished = this.#full === undefined && this.#wholeBytes < all.length;
    const lines = partial ? 1 : this.#wholeLines + (unfinished ? 1 : 0);
    const last = this.#first + lines - 1;
    return {
      text: new TextDecoder("utf-8", { ignoreBOM: this.#first > 1 }).decode(bytes),
      first: this.#first,
      lines,
      totalLines,
      totalBytes,
      truncatedBy: this.#full ?? (last < totalLines ? "lines" : null),
      partial,
    };
  }
}

/** Drops the beginning of a character whose rest was cut off. */
function wholeCharacters(bytes: Buffer): Buffer {
  let start = bytes.length - 1;
  while (start > 0 && start > bytes.length - 4 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start--;
  const lead = bytes[start] ?? 0;
  const size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
  return start + size > bytes.length ? bytes.subarray(0, start) : bytes;
}

/** The text of a window with a line that says how to go on, and the record of what is missing. */
export function presentWindow(window: Window, shown: string): { text: string; truncation: Truncation | undefined } {
  const { first, lines, totalLines, totalBytes, truncatedBy, partial } = window;
  if (totalLines === 0) return { text: "(the file is empty)", truncation: undefined };
  if (first > totalLines) {
    throw new ToolError(`Cannot read ${shown} from line ${first}: it has ${totalLines} ${totalLines === 1 ? "line" : "lines"}`);
  }
  if (truncatedBy === null) return { text: window.text, truncation: undefined };
  const last = first + lines - 1;
  const range = first === last ? `Line ${first}` : `Lines ${first}-${last}`;
  const hint = partial
    ? `[Line ${first} of ${totalLines} is too long and shown in part; the rest needs bash, e.g. cut -c]`
    : `[${range} of ${totalLines} shown; continue with offset=${last + 1}]`;
  const body = window.text.endsWith("\n") ? window.text : `${window.text}\n`;
  const truncation: Truncation = {
    content: window.text,
    truncated: true,
    truncatedBy,
    totalLines,
    totalBytes,
    outputLines: lines,
    outputBytes: Buffer.byteLength(window.text),
    lastLinePartial: partial,
    firstLineExceedsLimit: partial && first === 1,
    maxLines: MAX_LINES,
    maxBytes: MAX_BYTES,
  };
  return { text: `${body}\n${hint}`, truncation };
}

/** Several windows of one file, each under a line that names it, as many as fit in a result. */
export async function presentRanges(
  ranges: readonly { offset: number; limit: number }[],
  source: (range: { offset: number; limit: number }) => Window | Promise<Window>,
  shown: string,
): Promise<{ text: string; truncation: Truncation | undefined }> {
  const parts: string[] = [];
  let room = MAX_BYTES;
  for (const [index, range] of ranges.entries()) {
    const window = await source(range);
    const { first, lines, totalLines } = window;
    const size = Buffer.byteLength(window.text);
    if (size > room) {
      const rest = ranges.slice(index).map(({ offset, limit }) => `${offset}+${limit}`);
      parts.push(`[No room for more; continue with ${shown}:${rest.join(",")}]`);
      break;
    }
    room -= size;
    const body = window.text.replace(/\r?\n$/, "");
    if (first > totalLines) parts.push(`[Line ${first}: the file has ${totalLines} ${totalLines === 1 ? "line" : "lines"}]`);
    else parts.push(`[Lines ${first}-${first + lines - 1} of ${totalLines}]\n${body}`);
    if (window.truncatedBy === "bytes") parts.push(`[Cut here: too long for a result]`);
  }
  return { text: parts.join("\n"), truncation: undefined };
}

const controls = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;

/** Shows control characters as `\xNN`; CR of a CRLF line end is left out. Returns what was changed. */
export function visible(text: string): { text: string; notes: string[] } {
  const notes: string[] = [];
  let shown = text;
  if (shown.includes("\r\n")) {
    shown = shown.replaceAll("\r\n", "\n");
    notes.push("Line ends are CRLF");
  }
  if (shown.search(controls) >= 0) {
    shown = shown.replace(controls, (character) => `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`);
    notes.push("Control characters are shown as \\xNN");
  }
  if (shown.includes("\ufffd")) notes.push("Bytes that are not UTF-8 are shown as U+FFFD");
  return { text: shown, notes };
}
