// How streams of a PDF file are packed (ISO 32000-1 §7.4), as far as text is.
import { promisify } from "node:util";
import { constants, inflate } from "node:zlib";

const inflateBytes = promisify(inflate);
/** One stream unpacked; a small file may claim to hold far more. */
const MAX_STREAM = 64 * 1024 * 1024;

/** LZW: 256 empties the table, 257 ends the data, others are bytes or entries of the table. */
const CLEAR = 256;
const END = 257;
const MAX_BITS = 12;
/** Bytes after which others have a turn. */
const REST_BYTES = 512 * 1024;

/** Undefined for what no text is packed with. `earlyChange`: LZW codes get longer one code before they have to, which is usual. */
export async function unpack(bytes: Buffer, filter: string, options: { earlyChange: boolean }): Promise<Buffer | undefined> {
  if (filter === "FlateDecode" || filter === "Fl") {
    // What is cut off or damaged at its end gives what can be had.
    const limits = { finishFlush: constants.Z_SYNC_FLUSH, maxOutputLength: MAX_STREAM };
    return inflateBytes(bytes, limits).catch(() => undefined);
  }
  if (filter === "ASCIIHexDecode" || filter === "AHx")
    return Buffer.from(bytes.toString("latin1").replace(/>[\s\S]*|[^0-9a-fA-F]/g, ""), "hex");
  if (filter === "LZWDecode" || filter === "LZW") return lzw(bytes, options.earlyChange ? 1 : 0);
  if (filter === "RunLengthDecode" || filter === "RL") return runLength(bytes);
  return filter === "ASCII85Decode" || filter === "A85" ? ascii85(bytes.toString("latin1")) : undefined;
}

function ascii85(text: string): Buffer {
  const digits = text.replace(/~>[\s\S]*|[^!-uz]/g, "").replaceAll("z", "!!!!!");
  const out = Buffer.alloc(Math.ceil(digits.length / 5) * 4);
  let length = 0;
  for (let at = 0; at < digits.length; at += 5) {
    const group = digits.slice(at, at + 5);
    const value = [...group.padEnd(5, "u")].reduce((sum, digit) => sum * 85 + digit.charCodeAt(0) - 33, 0);
    out.writeUInt32BE(value % 0x1_0000_0000, length);
    length += group.length - 1;
  }
  return out.subarray(0, length);
}

/** Entries of the table are kept as places in what has been unpacked: each is the one before it with one byte more. */
async function lzw(bytes: Buffer, early: number): Promise<Buffer | undefined> {
  let out = Buffer.allocUnsafe(4 * bytes.length + 4096);
  let length = 0;
  let rested = 0;
  const places: { start: number; end: number }[] = [];
  let bits = 9;
  let held = 0;
  let size = 0;
  /** Where the last code's bytes began; undefined after an empty table. */
  let last: number | undefined;
  for (const byte of bytes) {
    held = ((held << 8) | byte) & 0xff_ffff;
    size += 8;
    if (size < bits) continue;
    size -= bits;
    const code = (held >> size) & ((1 << bits) - 1);
    if (code === END) break;
    if (code === CLEAR) {
      places.length = 0;
      bits = 9;
      last = undefined;
      continue;
    }
    const start = length;
    if (last !== undefined) places.push({ start: last, end: start + 1 });
    const place = places[code - END - 1];
    // Damaged: what was there before it stands.
    if (code > END && place === undefined) break;
    // An entry is never longer than all there is.
    if (2 * length + 1 > out.length) out = Buffer.concat([out], 2 * out.length);
    if (place === undefined || code < CLEAR) out[length++] = code;
    else for (let at = place.start; at < place.end; at++) out[length++] = out[at] ?? 0;
    if (length > MAX_STREAM) return undefined;
    last = start;
    // The entry that the next code will complete counts as well.
    if (places.length + END + 2 + early > 1 << bits && bits < MAX_BITS) bits++;
    if (length - rested > REST_BYTES) {
      rested = length;
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
  }
  return out.subarray(0, length);
}

/** A count below 128: so many bytes and one more as they are; above: the next byte so many times less than 257. */
function runLength(bytes: Buffer): Buffer | undefined {
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const count = bytes[at++] ?? 128;
    if (count === 128) break;
    parts.push(count < 128 ? bytes.subarray(at, at + count + 1) : Buffer.alloc(257 - count, bytes[at]));
    at += count < 128 ? count + 1 : 1;
  }
  const whole = Buffer.concat(parts);
  return whole.length > MAX_STREAM ? undefined : whole;
}
