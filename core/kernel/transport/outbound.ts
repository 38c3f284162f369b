// The single ordered writer of frames. Everything the host reads goes through one queue: frames of one turn of the event loop leave
// in one write, a large frame's chunks stay together, and while the reader is slow nothing is lost and nothing is written.
import type { Writable } from "node:stream";
import { isDeepStrictEqual } from "node:util";
import { chunkCount, encodeChunk } from "../../../protocol/chunk.ts";
import type { Frame } from "../../../protocol/frame.ts";
import { MAX_FRAME_BYTES, MAX_REASSEMBLED_FRAME_BYTES } from "../../../protocol/limits.ts";
import { ProtocolError } from "../errors.ts";
import { describeOverflow, mustNotBeCut, type Overflow, overflowText, parseSerialized } from "./overflow.ts";
import { serializeFrame, withWholeCharacters } from "./serialize.ts";

export interface OutboundOptions {
  /** Longest line in bytes, newline included, on protocol v1; 0 lifts the limit, else at least 1024. Default 1 MiB. */
  readonly maxFrameBytes?: number | undefined;
  /** Backlog in characters above which a slow reader counts as congestion. Default 128 Ki. */
  readonly highWaterMark?: number | undefined;
  /** Bytes the sink holds that the system has not taken yet; lets `end` see progress inside one large write. */
  readonly unsentBytes?: (() => number) | undefined;
  /** The reader is gone: called once, nothing is written afterwards. */
  readonly onClosed?: ((error: Error) => void) | undefined;
}

/** A frame as bytes, sent piece by piece. */
interface ChunkedFrame {
  readonly bytes: Buffer;
  readonly chunkId: string;
  next: number;
}

/** A `message_end` that went out, as it came: an object's message, or the JSON text of the frame, read only when needed. */
type Streamed = { readonly message: unknown } | { readonly json: string };

/** Smallest limit: the substitute of a frame that does not fit must fit itself. */
export const MIN_FRAME_BYTES = 1_024;
/** Characters joined into one write. Larger writes gain nothing, and a smaller one shows progress sooner. */
const BATCH = 131_072;
const V1_WAY_OUT =
  "negotiate protocol version 2, ask for less (get_messages_page, for example), or start with --max-frame-bytes 0";
const V2_WAY_OUT = "ask for less (get_messages_page, for example)";

export class Outbound {
  readonly #sink: Writable;
  readonly #maxFrameBytes: number;
  readonly #highWaterMark: number;
  readonly #unsentBytes: (() => number) | undefined;
  readonly #onClosed: ((error: Error) => void) | undefined;
  #queue: (string | ChunkedFrame)[] = [];
  #head = 0;
  /** Characters in the queue. */
  #queued = 0;
  /** Characters handed to the sink and not confirmed. */
  #inFlight = 0;
  #scheduled = false;
  #wasCongested = false;
  #closed = false;
  #ended = false;
  #version: 1 | 2 = 1;
  #upgrading = false;
  #chunkedFrames = 0;
  /** The messages of this run that the host has got as `message_end`. */
  #streamed: Streamed[] = [];
  readonly #drainListeners = new Set<() => void>();
  #idleWaiters: (() => void)[] = [];

  constructor(sink: Writable, options: OutboundOptions = {}) {
    this.#sink = sink;
    this.#maxFrameBytes = options.maxFrameBytes ?? MAX_FRAME_BYTES;
    if (this.#maxFrameBytes !== 0 && !(this.#maxFrameBytes >= MIN_FRAME_BYTES)) {
      throw new RangeError(`Frame limit must be 0 or at least ${MIN_FRAME_BYTES} bytes, found ${this.#maxFrameBytes}`);
    }
    this.#highWaterMark = options.highWaterMark ?? 131_072;
    this.#unsentBytes = options.unsentBytes;
    this.#onClosed = options.onClosed;
    sink.on("error", (error: Error) => this.#close(error));
    sink.on("close", () => this.#close(new Error("Output stream closed")));
  }

  /** 1, or 2 once the answer to `negotiate_protocol` has been queued. */
  get protocolVersion(): 1 | 2 {
    return this.#version;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Characters not yet taken by the reader's side; about the same in bytes. */
  get pendingBytes(): number {
    return this.#queued + this.#inFlight;
  }

  /** The reader is slow and the backlog has passed the high-water mark: whoever can merge frames should wait for `onDrain`. */
  get congested(): boolean {
    const congested = this.#inFlight > 0 && this.pendingBytes > this.#highWaterMark;
    if (congested) this.#wasCongested = true;
    return congested;
  }

  /** Calls back each time a congestion that was seen is over. Returns the undo. */
  onDrain(listener: () => void): () => void {
    this.#drainListeners.add(listener);
    return () => this.#drainListeners.delete(listener);
  }

  /** Switches to protocol v2 right after the answer to `negotiate_protocol`, which itself still goes out as v1. */
  negotiateV2(): void {
    if (this.#version === 1) this.#upgrading = true;
  }

  /**
   * Queues a frame. Frames go out in the order of the calls; after `end` or a lost reader they are dropped.
   * @throws ProtocolError when a request to the host (host tool, host URI, dialog) is too large: half of it must not be acted on.
   */
  send(frame: Frame): void {
    if (this.#closed || this.#ended) return;
    this.#enqueue(serializeFrame(frame), frame.type, frame);
    if (frame.type === "message_end") this.#streamed.push({ message: frame["message"] });
    else if (frame.type === "agent_start") this.#streamed = [];
    else if (frame.type === "agent_end" && frame["willContinue"] !== true) this.#streamed = [];
    else if (this.#upgrading && frame.type === "response" && frame["command"] === "negotiate_protocol") this.#upgrade();
  }

  /** Queues a frame that is already JSON text (no newline in it) and whose `type` is given. Else as `send`. */
  sendSerialized(json: string, type: string): void {
    if (this.#closed || this.#ended) return;
    this.#enqueue(json, type, undefined);
    if (type === "message_end") this.#streamed.push({ json });
    else if (type === "agent_start" || type === "agent_end") this.#streamed = [];
    else if (this.#upgrading && type === "response" && json.includes('"negotiate_protocol"')) this.#upgrade();
  }

  /** Settles when everything queued so far has been taken, or the reader is gone. */
  drain(): Promise<void> {
    if (this.#closed || this.pendingBytes === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idleWaiters.push(resolve));
  }

  /**
   * Takes no more frames and drains as long as the reader makes progress.
   * @returns true when all was taken, false when the reader was gone or took nothing for the given time. After false the sink
   * may still hold bytes that keep the process alive; only then is `process.exit` right.
   */
  async end(timeoutWithoutProgressMs = 10_000): Promise<boolean> {
    this.#ended = true;
    if (this.pendingBytes > 0 && !this.#closed) await this.#drainWhileProgress(timeoutWithoutProgressMs);
    return this.pendingBytes === 0 && !this.#closed;
  }

  async #drainWhileProgress(timeoutMs: number): Promise<void> {
    let seen = this.#progressMark();
    let since = Date.now();
    let timer: NodeJS.Timeout | undefined;
    const stalled = new Promise<void>((resolve) => {
      timer = setInterval(
        () => {
          const now = this.#progressMark();
          if (now !== seen) {
            seen = now;
            since = Date.now();
          } else if (Date.now() - since >= timeoutMs) resolve();
        },
        Math.max(5, Math.min(250, timeoutMs / 4)),
      );
    });
    await Promise.race([this.drain(), stalled]);
    clearInterval(timer);
  }

  #progressMark(): number {
    return this.#queued + (this.#unsentBytes === undefined ? this.#inFlight : this.#inFlight + this.#unsentBytes());
  }

  #upgrade(): void {
    this.#upgrading = false;
    this.#version = 2;
  }

  #enqueue(given: string, type: string, frame: Frame | undefined): void {
    const json = withWholeCharacters(given);
    const limit = this.#version === 2 ? MAX_FRAME_BYTES : this.#maxFrameBytes;
    // One UTF-16 unit is at most three bytes, so nearly every frame is known to fit without counting.
    if (limit === 0 || json.length * 3 < limit) return this.#push(json, json.length + 1);
    const bytes = Buffer.byteLength(json);
    if (bytes < limit) return this.#push(json, json.length + 1);
    if (this.#version === 2 && bytes <= MAX_REASSEMBLED_FRAME_BYTES) return this.#pushChunked(json);
    this.#pushOverflow(frame ?? parseSerialized(json, type), {
      bytes,
      limit: this.#version === 2 ? MAX_REASSEMBLED_FRAME_BYTES : limit,
      lineLimit: limit,
      wayOut: this.#version === 2 ? V2_WAY_OUT : V1_WAY_OUT,
    });
  }

  #pushOverflow(frame: Frame, overflow: Overflow): void {
    if (mustNotBeCut(frame)) throw new ProtocolError(describeOverflow(`Frame ${frame.type}`, overflow));
    const text = overflowText(frame, overflow, this.#streamedPrefix(frame));
    this.#push(text, text.length + 1);
  }

  #streamedPrefix(frame: Frame): number {
    const messages = frame["messages"];
    if (frame.type !== "agent_end" || !Array.isArray(messages)) return 0;
    const different = messages.findIndex((message: unknown, at) => !sameMessage(this.#streamed[at], message));
    return different === -1 ? messages.length : different;
  }

  #pushChunked(json: string): void {
    this.#chunkedFrames += 1;
    const bytes = Buffer.from(json, "utf8");
    this.#push({ bytes, chunkId: `rpc-${this.#chunkedFrames}`, next: 0 }, bytes.length);
  }

  #push(item: string | ChunkedFrame, size: number): void {
    this.#queue.push(item);
    this.#queued += size;
    if (this.#scheduled || this.#inFlight > 0) return;
    this.#scheduled = true;
    queueMicrotask(this.#flush);
  }

  readonly #flush = (): void => {
    this.#scheduled = false;
    if (this.#closed || this.#inFlight > 0 || this.#queued === 0) return;
    const before = this.#queued;
    const batch = this.#takeBatch();
    this.#inFlight = before - this.#queued;
    try {
      this.#sink.write(batch, "utf8", this.#written);
    } catch (error) {
      this.#close(error instanceof Error ? error : new Error(String(error)));
    }
  };

  readonly #written = (error?: Error | null): void => {
    if (error != null) return this.#close(error);
    if (this.#closed) return;
    this.#inFlight = 0;
    this.#flush();
    if (this.#wasCongested && this.pendingBytes <= this.#highWaterMark / 4) {
      this.#wasCongested = false;
      for (const listener of [...this.#drainListeners]) listener();
    }
    if (this.pendingBytes === 0) this.#settleIdle();
  };

  /** The next lines as one text, each with its newline. */
  #takeBatch(): string {
    if (this.#head === 0 && this.#queued <= BATCH && this.#queue.every(isLine)) {
      const all = `${this.#queue.join("\n")}\n`;
      this.#queue = [];
      this.#queued = 0;
      return all;
    }
    const lines: string[] = [];
    let size = 0;
    while (size < BATCH && this.#head < this.#queue.length) {
      const line = this.#nextLine();
      size += line.length + 1;
      lines.push(line);
    }
    if (this.#head === this.#queue.length) {
      this.#queue = [];
      this.#head = 0;
    } else if (this.#head > 1024 && this.#head * 2 > this.#queue.length) {
      this.#queue = this.#queue.slice(this.#head);
      this.#head = 0;
    }
    return `${lines.join("\n")}\n`;
  }

  #nextLine(): string {
    const item = this.#queue[this.#head];
    if (item === undefined) return "";
    if (typeof item === "string") {
      this.#queue[this.#head] = "";
      this.#head += 1;
      this.#queued -= item.length + 1;
      return item;
    }
    const line = encodeChunk(item.bytes, item.chunkId, item.next);
    const count = chunkCount(item.bytes.length);
    const from = Math.floor((item.bytes.length * item.next) / count);
    item.next += 1;
    this.#queued -= Math.floor((item.bytes.length * item.next) / count) - from;
    if (item.next === count) {
      this.#queue[this.#head] = "";
      this.#head += 1;
    }
    return line;
  }

  #close(error: Error): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#queue = [];
    this.#head = 0;
    this.#queued = 0;
    this.#inFlight = 0;
    this.#settleIdle();
    this.#onClosed?.(error);
  }

  #settleIdle(): void {
    const waiters = this.#idleWaiters;
    if (waiters.length === 0) return;
    this.#idleWaiters = [];
    for (const resolve of waiters) resolve();
  }
}

function isLine(item: string | ChunkedFrame): item is string {
  return typeof item === "string";
}

function sameMessage(streamed: Streamed | undefined, message: unknown): boolean {
  if (streamed === undefined) return false;
  const sent = "json" in streamed ? parseSerialized(streamed.json, "message_end")["message"] : streamed.message;
  return sent === message || isDeepStrictEqual(sent, message);
}
