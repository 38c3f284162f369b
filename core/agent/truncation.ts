// Cutting text to what a model should see: by lines and by UTF-8 bytes, whichever comes first, never inside a character.
// Tools report the record below in `details.truncation`; hosts read its field names.

/** 2000 lines: what one result shows at most. */
export const MAX_LINES = 2000;
/** 50 KiB: what one result shows at most, in UTF-8 bytes. */
export const MAX_BYTES = 50 * 1024;

export interface Truncation {
  content: string;
  truncated: boolean;
  truncatedBy: "lines" | "bytes" | null;
  totalLines: number;
  totalBytes: number;
  outputLines: number;
  outputBytes: number;
  /** The line at the cut is shown in part, because it alone is over the byte limit. */
  lastLinePartial: boolean;
  firstLineExceedsLimit: boolean;
  maxLines: number;
  maxBytes: number;
}

export interface TruncationLimits {
  maxLines?: number | undefined;
  maxBytes?: number | undefined;
}

/** Lines of a text; a final newline ends the last line and starts none. */
export function countLines(text: string): number {
  if (text === "") return 0;
  let lines = 1;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lines++;
  return text.endsWith("\n") ? lines - 1 : lines;
}

/** Keeps the beginning: whole lines, or the beginning of the first one when it alone is too long. */
export function truncateHead(text: string, limits: TruncationLimits = {}): Truncation {
  const { maxLines = MAX_LINES, maxBytes = MAX_BYTES } = limits;
  let end = 0;
  let lines = 0;
  let bytes = 0;
  let by: "lines" | "bytes" | null = null;
  while (end < text.length) {
    if (lines === maxLines) {
      by = "lines";
      break;
    }
    const newline = text.indexOf("\n", end);
    const next = newline < 0 ? text.length : newline + 1;
    const size = utf8Length(text, end, next);
    // The newline itself may stand over the limit: it is not shown when it is the last character.
    if (bytes + size - (newline < 0 ? 0 : 1) > maxBytes) {
      by = "bytes";
      break;
    }
    bytes += size;
    lines++;
    end = next;
  }
  if (by === null && bytes > maxBytes) by = "bytes";
  const partial = by === "bytes" && lines === 0;
  const content = partial ? headBytes(text, maxBytes) : text.slice(0, end);
  return record(text, by === null ? content : stripFinalNewline(content), by, partial, { maxLines, maxBytes });
}

/** Keeps the end: whole lines, or the end of the last one when it alone is too long. */
export function truncateTail(text: string, limits: TruncationLimits = {}): Truncation {
  const { maxLines = MAX_LINES, maxBytes = MAX_BYTES } = limits;
  let start = text.length;
  let lines = 0;
  let bytes = 0;
  let by: "lines" | "bytes" | null = null;
  while (start > 0) {
    if (lines === maxLines) {
      by = "lines";
      break;
    }
    const newline = start < 2 ? -1 : text.lastIndexOf("\n", start - 2);
    const size = utf8Length(text, newline + 1, start);
    if (bytes + size > maxBytes) {
      by = "bytes";
      break;
    }
    bytes += size;
    lines++;
    start = newline + 1;
  }
  const partial = by === "bytes" && lines === 0;
  return record(text, partial ? tailBytes(text, maxBytes) : text.slice(start), by, partial, { maxLines, maxBytes });
}

/** The longest beginning of at most `maxBytes` UTF-8 bytes, on a whole character. */
export function headBytes(text: string, maxBytes: number): string {
  const slice = text.slice(0, maxBytes);
  if (Buffer.byteLength(slice) <= maxBytes) return dropHalf(slice, text);
  const bytes = Buffer.from(slice);
  let end = maxBytes;
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return bytes.subarray(0, end).toString();
}

/** The longest end of at most `maxBytes` UTF-8 bytes, on a whole character. */
export function tailBytes(text: string, maxBytes: number): string {
  const from = Math.max(0, text.length - maxBytes);
  const slice = text.slice(isLowSurrogate(text.charCodeAt(from)) && from > 0 ? from + 1 : from);
  const bytes = Buffer.from(slice);
  if (bytes.length <= maxBytes) return slice;
  let start = bytes.length - maxBytes;
  while (start < bytes.length && ((bytes[start] ?? 0) & 0xc0) === 0x80) start++;
  return bytes.subarray(start).toString();
}

/** `1.5 KB`, for texts that state how much was left out. */
export function formatBytes(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  if (bytes < 1024 * 1024) return `${(bytes / 1024).toFixed(1)} KB`;
  return `${(bytes / (1024 * 1024)).toFixed(1)} MB`;
}

function record(
  text: string,
  content: string,
  truncatedBy: "lines" | "bytes" | null,
  partial: boolean,
  limits: { maxLines: number; maxBytes: number },
): Truncation {
  return {
    content,
    truncated: truncatedBy !== null,
    truncatedBy,
    totalLines: countLines(text),
    totalBytes: Buffer.byteLength(text),
    outputLines: countLines(content),
    outputBytes: Buffer.byteLength(content),
    lastLinePartial: partial,
    firstLineExceedsLimit: partial,
    ...limits,
  };
}

function utf8Length(text: string, start: number, end: number): number {
  return Buffer.byteLength(text.slice(start, end));
}

function stripFinalNewline(text: string): string {
  return text.endsWith("\n") ? text.slice(0, -1) : text;
}

/** A slice may end between the halves of a pair although the text is well formed. */
function dropHalf(slice: string, text: string): string {
  const last = slice.charCodeAt(slice.length - 1);
  return slice.length < text.length && last >= 0xd800 && last <= 0xdbff ? slice.slice(0, -1) : slice;
}

function isLowSurrogate(code: number): boolean {
  return code >= 0xdc00 && code <= 0xdfff;
}
