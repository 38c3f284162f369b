// Bytes of a file → lines, split on LF only (U+2028 and the like are text), in bounded memory and short slices of time.
import type { FileHandle } from "node:fs/promises";
import { Slices } from "./slices.ts";

const CHUNK_BYTES = 1024 * 1024;
/** The clock is looked at after so many bytes; a line counts as more than it has, because it costs more. */
const LOOK_BYTES = 16 * 1024;
const LINE_BYTES = 256;
/** Longer lines are skipped as damage: no entry comes near it, and a string of that size cannot be parsed in bounded memory. */
const MAX_LINE_BYTES = 256 * 1024 * 1024;

/** One line without its LF. `bytes` is valid only during the call; undefined when the line was too long to be kept. */
export interface RawLine {
  readonly bytes: Buffer | undefined;
  /** Where the line starts in the file. */
  readonly offset: number;
  readonly length: number;
  /** False for bytes after the last LF. */
  readonly complete: boolean;
}

/**
 * Calls `onLine` for every line from `start` on, the unfinished last one included; a false answer stops the reading.
 * Returns the offset where reading ended. Never holds the event loop for longer than one slice plus one line.
 */
export async function readLines(
  handle: FileHandle,
  onLine: (line: RawLine) => boolean,
  options: { start?: number; end?: number | undefined; maxLineBytes?: number } = {},
): Promise<number> {
  const maxLine = options.maxLineBytes ?? MAX_LINE_BYTES;
  const end = options.end ?? Number.POSITIVE_INFINITY;
  const pending = new PendingLine(maxLine);
  let position = options.start ?? 0;
  let lineStart = position;
  const slices = new Slices();
  let sinceLook = 0;
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  while (position < end) {
    const { bytesRead } = await handle.read(chunk, 0, Math.min(CHUNK_BYTES, end - position), position);
    slices.restart();
    if (bytesRead === 0) break;
    const data = chunk.subarray(0, bytesRead);
    let from = 0;
    for (let at = data.indexOf(10); at >= 0; at = data.indexOf(10, from)) {
      const length = pending.length + at - from;
      const bytes = pending.finish(data.subarray(from, at));
      from = at + 1;
      if (!onLine({ bytes, offset: lineStart, length, complete: true })) return position + from;
      lineStart = position + from;
      sinceLook += length + LINE_BYTES;
      if (sinceLook < LOOK_BYTES) continue;
      sinceLook = 0;
      if (slices.due) await slices.rest();
    }
    pending.add(data.subarray(from));
    position += bytesRead;
  }
  if (pending.length > 0) {
    const length = pending.length;
    onLine({ bytes: pending.finish(Buffer.alloc(0)), offset: lineStart, length, complete: false });
  }
  return position;
}

/** The parts of a line that spans chunks; joined once, when its end is seen. */
class PendingLine {
  readonly #max: number;
  #parts: Buffer[] = [];
  length = 0;

  constructor(max: number) {
    this.#max = max;
  }
  add(bytes: Buffer): void {
    if (bytes.length === 0) return;
    this.length += bytes.length;
    // The chunk buffer is reused, so the part is copied.
    if (this.length <= this.#max) this.#parts.push(Buffer.from(bytes));
    else this.#parts = [];
  }
  finish(last: Buffer): Buffer | undefined {
    const length = this.length + last.length;
    const parts = this.#parts;
    this.#parts = [];
    this.length = 0;
    if (length > this.#max) return undefined;
    return parts.length === 0 ? last : Buffer.concat([...parts, last], length);
  }
}
