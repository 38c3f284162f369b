// One line → the JSON objects in it. A sound line is one object. A damaged one may still hold whole objects: lines glued
// together because a LF was lost, or text around a run of NUL bytes that a crashed file system left.

/** An object may start here: every writer of this format puts the type first. */
const OPENING = Buffer.from('{"type":');
const MAX_CANDIDATES = 200_000;
/** Bytes looked at per line, as a multiple of its length: keeps the search linear however the damage looks. */
const EFFORT = 16;
/** Of a long line less, because the search does not yield: twice its length and this. */
const LONG_EFFORT = 16 * 1024 * 1024;

export interface Salvage {
  readonly values: unknown[];
  /** True when some bytes of the line belong to none of the values. */
  readonly damaged: boolean;
}

/** Never throws. Blank lines give no values and no damage. @param text the bytes as UTF-8. */
export function parseLine(bytes: Buffer, text = bytes.toString("utf8")): Salvage {
  const whole = parseObject(text);
  if (whole !== undefined) return { values: [whole], damaged: false };
  if (text.trim() === "" || text.trim() === "\uFEFF") return { values: [], damaged: false };
  return salvage(bytes);
}

function salvage(bytes: Buffer): Salvage {
  const values: unknown[] = [];
  let damaged = false;
  for (let start = 0; start < bytes.length; ) {
    // Byte by byte: a run may have megabytes, and every search costs more than a look.
    if (bytes[start] === 0) {
      damaged = true;
      start++;
      continue;
    }
    const nul = bytes.indexOf(0, start);
    const end = nul < 0 ? bytes.length : nul;
    damaged = separate(bytes.subarray(start, end), values) || damaged;
    start = end;
  }
  return { values, damaged };
}

/** Finds objects that run from one opening to the next, or to the end; true when something is left over. */
function separate(segment: Buffer, values: unknown[]): boolean {
  const starts: number[] = [];
  for (let at = segment.indexOf(OPENING); at >= 0 && starts.length < MAX_CANDIDATES; at = segment.indexOf(OPENING, at + 1))
    starts.push(at);
  let damaged = starts[0] === undefined || segment.subarray(0, starts[0]).toString("utf8").trim() !== "";
  let effort = Math.min(segment.length * EFFORT, segment.length * 2 + LONG_EFFORT);
  for (let i = 0; i < starts.length && effort > 0; ) {
    const start = starts[i] ?? 0;
    const close = closingBrace(segment, start);
    effort -= (close ?? segment.length) - start;
    // Nested objects are candidates too and are passed over.
    let next = i + 1;
    while (close !== undefined && (starts[next] ?? segment.length) < close) next++;
    const value = close === undefined ? undefined : objectBetween(segment, start, close, starts[next] ?? segment.length);
    if (value === undefined) {
      damaged = true;
      i++;
    } else {
      values.push(value);
      i = next;
    }
  }
  return damaged;
}

/** The object from `start` to `close`, when the next one, or the end of everything, follows it directly. */
function objectBetween(segment: Buffer, start: number, close: number, next: number): unknown {
  // Anything else means that this is a part of a bigger, torn one.
  const between = segment
    .subarray(close + 1, next)
    .toString("utf8")
    .trim();
  return between === "" ? parseObject(segment.subarray(start, close + 1).toString("utf8")) : undefined;
}

/** Index of the brace that closes the one at `start`; undefined when the object is torn. */
function closingBrace(bytes: Buffer, start: number): number | undefined {
  let depth = 0;
  let inString = false;
  for (let i = start; i < bytes.length; i++) {
    const byte = bytes[i];
    if (inString) {
      if (byte === 0x5c) i++;
      else if (byte === 0x22) inString = false;
    } else if (byte === 0x22) inString = true;
    else if (byte === 0x7b) depth++;
    else if (byte === 0x7d && --depth === 0) return i;
  }
  return undefined;
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text.charCodeAt(0) === 0xfeff ? text.slice(1) : text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
