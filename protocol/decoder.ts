// The host's side of protocol v2: lines in, whole frames out.
import { isUtf8 } from "node:buffer";
import type { Frame } from "./frame.ts";
import { CHUNK_BYTES, MAX_FRAME_BYTES, MAX_REASSEMBLED_FRAME_BYTES } from "./limits.ts";

/** The daemon broke the framing rules. Fatal: what follows cannot be trusted. */
export class FrameDecodeError extends Error {
  override readonly name = "FrameDecodeError";
}

const MAX_CHUNKS = MAX_REASSEMBLED_FRAME_BYTES / CHUNK_BYTES;
const MAX_CHUNK_ID = 128;

interface Sequence {
  readonly chunkId: string;
  readonly count: number;
  readonly byteLength: number;
  readonly parts: Buffer[];
  received: number;
}

/**
 * Reassembles frames. `decode(line)` gives a frame, or undefined while a chunk sequence is incomplete.
 * @throws FrameDecodeError when a line is no JSON object or a chunk sequence is malformed, mixed up or interrupted; the
 * decoder drops the sequence, so that a lenient caller may go on with the next line.
 */
export class FrameDecoder {
  #sequence: Sequence | undefined;

  /** True while a chunk sequence has begun and not ended. */
  get incomplete(): boolean {
    return this.#sequence !== undefined;
  }

  decode(line: string): Frame | undefined {
    try {
      return this.#accept(parseFrame(line));
    } catch (error) {
      this.#sequence = undefined;
      throw error;
    }
  }

  /** The stream ended. @throws FrameDecodeError inside a chunk sequence. */
  end(): void {
    if (this.#sequence === undefined) return;
    this.#sequence = undefined;
    throw new FrameDecodeError("rpc chunk sequence interrupted");
  }

  #accept(frame: Frame): Frame | undefined {
    if (frame.type !== "rpc_chunk") {
      if (this.#sequence !== undefined) throw new FrameDecodeError("rpc chunk sequence interrupted");
      return frame;
    }
    const { chunkId, index, count, byteLength } = readMetadata(frame);
    const data = readData(frame["data"]);
    let sequence = this.#sequence;
    if (sequence === undefined) {
      if (index !== 0) throw new FrameDecodeError("rpc chunk sequence must start at index 0");
      sequence = { chunkId, count, byteLength, parts: [], received: 0 };
      this.#sequence = sequence;
    } else if (
      sequence.chunkId !== chunkId ||
      sequence.count !== count ||
      sequence.byteLength !== byteLength ||
      sequence.parts.length !== index
    ) {
      throw new FrameDecodeError("rpc chunk sequence mismatch");
    }
    sequence.received += data.length;
    if (sequence.received > byteLength) throw new FrameDecodeError("rpc chunk sequence exceeds declared length");
    sequence.parts.push(data);
    if (sequence.parts.length < count) return undefined;
    if (sequence.received !== byteLength) throw new FrameDecodeError("rpc chunk sequence length mismatch");
    this.#sequence = undefined;
    return join(sequence);
  }
}

function join(sequence: Sequence): Frame {
  const bytes = Buffer.concat(sequence.parts, sequence.byteLength);
  if (!isUtf8(bytes)) throw new FrameDecodeError("rpc chunk sequence is not valid UTF-8");
  const frame = parseFrame(bytes.toString("utf8"));
  if (frame.type === "rpc_chunk") throw new FrameDecodeError("rpc chunk sequence must not hold another chunk");
  return frame;
}

function parseFrame(text: string): Frame {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new FrameDecodeError(`Line is not JSON: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
  if (!isFrame(value)) throw new FrameDecodeError("rpc frame must be an object");
  return value;
}

/** A JSON object. `type` may be missing in frames of foreign daemons; it is then no known type, which is all that matters. */
function isFrame(value: unknown): value is Frame {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function readMetadata(frame: Frame): { chunkId: string; index: number; count: number; byteLength: number } {
  const { chunkId, index, count, byteLength } = frame;
  if (
    typeof chunkId !== "string" ||
    chunkId.length === 0 ||
    chunkId.length > MAX_CHUNK_ID ||
    !isSafe(index) ||
    !isSafe(count) ||
    !isSafe(byteLength) ||
    count < 2 ||
    count > MAX_CHUNKS ||
    index < 0 ||
    index >= count ||
    byteLength < MAX_FRAME_BYTES ||
    byteLength > MAX_REASSEMBLED_FRAME_BYTES
  ) {
    throw new FrameDecodeError("invalid rpc chunk metadata");
  }
  return { chunkId, index, count, byteLength };
}

function isSafe(value: unknown): value is number {
  return Number.isSafeInteger(value);
}

function readData(data: unknown): Buffer {
  if (typeof data !== "string" || data.length === 0) throw new FrameDecodeError("invalid rpc chunk data");
  const bytes = Buffer.from(data, "base64");
  // Canonical means that encoding gives the same text back: right alphabet, padding, and no stray bits in the last group.
  if (bytes.toString("base64") !== data) throw new FrameDecodeError("invalid rpc chunk data");
  if (bytes.length > CHUNK_BYTES) throw new FrameDecodeError("rpc chunk payload exceeds the transport limit");
  return bytes;
}
