// Collects the output of one command: decodes, reduces, keeps beginning and end in memory and all of it in a file once it
// does not fit. Memory is bounded by the limits, whatever the command prints.
import { createWriteStream, type WriteStream } from "node:fs";
import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import { countLines, errorMessage, formatBytes, MAX_BYTES, MAX_LINES, truncateHead, truncateTail } from "mortise/extension";
import { TerminalReducer } from "./_reduce.ts";

/** Share of the limits that shows how the output began. */
const HEAD_BYTES = 10 * 1024;
const HEAD_LINES = 400;
/** The elision line fits in here. */
const ELISION_BYTES = 200;
/** 256 MiB: a runaway command must not fill the disk. */
const MAX_FILE_BYTES = 256 * 1024 * 1024;

export interface CollectedOutput {
  output: string;
  truncated: boolean;
  totalLines: number;
  totalBytes: number;
  outputLines: number;
  outputBytes: number;
}

export class OutputCollector {
  readonly notes: string[] = [];
  readonly #decoder = new TextDecoder("utf-8", { fatal: false, ignoreBOM: true });
  readonly #reducer = new TerminalReducer();
  readonly #file: OutputFile | undefined;
  #head = "";
  #headFull = false;
  #tail = "";
  #textBytes = 0;
  #textLines = 0;
  #totalBytes = 0;

  /** `artifactPath` is asked once, when the output exceeds the limits; `onPressure` tells that the file cannot keep up. */
  constructor(artifactPath: (() => string) | undefined, onPressure: (full: boolean) => void) {
    this.#file = artifactPath && new OutputFile(artifactPath, onPressure, (note) => this.notes.push(note));
  }

  get totalBytes(): number {
    return this.#totalBytes;
  }

  /** The file with all of it, once there is one. */
  get path(): string | undefined {
    return this.#file?.path;
  }

  push(chunk: Buffer): void {
    this.#totalBytes += chunk.length;
    this.#append(this.#reducer.push(this.#decoder.decode(chunk, { stream: true })));
    this.#file?.push(chunk, this.#exceeded());
  }

  /** What a reader sees of the output so far. */
  snapshot(): CollectedOutput {
    const pending = this.#reducer.pending;
    const textBytes = this.#textBytes + Buffer.byteLength(pending);
    const totalLines = this.#textLines + (pending === "" ? 0 : 1);
    const tail = this.#tail + pending;
    if (textBytes <= MAX_BYTES && totalLines <= MAX_LINES) return this.#result(tail, false, totalLines);
    const head = truncateHead(this.#head, { maxBytes: HEAD_BYTES, maxLines: HEAD_LINES });
    const rest = truncateTail(tail, {
      maxBytes: MAX_BYTES - head.outputBytes - ELISION_BYTES,
      maxLines: MAX_LINES - head.outputLines - 1,
    });
    const lines = Math.max(0, totalLines - head.outputLines - rest.outputLines);
    const bytes = Math.max(0, textBytes - head.outputBytes - rest.outputBytes);
    const elision = `[… ${lines > 0 ? `${lines} lines, ` : ""}${formatBytes(bytes)} left out …]`;
    return this.#result(`${head.content}\n${elision}\n${rest.content}`, true, totalLines);
  }

  /** Ends decoding and the file; resolves with the file's path when there is one. */
  async finish(): Promise<string | undefined> {
    this.#append(this.#reducer.push(this.#decoder.decode()));
    return this.#file?.finish();
  }

  #exceeded(): boolean {
    return this.#textBytes > MAX_BYTES || this.#textLines > MAX_LINES || this.#totalBytes > MAX_BYTES;
  }

  #append(text: string): void {
    if (text === "") return;
    this.#textBytes += Buffer.byteLength(text);
    this.#textLines += text.endsWith("\n") ? countLines(text) : countLines(text) - 1;
    if (!this.#headFull) {
      this.#head += text.slice(0, HEAD_BYTES + 1);
      this.#headFull = this.#head.length > HEAD_BYTES;
    }
    this.#tail += text.length > 2 * MAX_BYTES ? text.slice(-2 * MAX_BYTES) : text;
    // Cut at twice the limit, so that the cost of cutting is constant per byte.
    if (this.#tail.length > 4 * MAX_BYTES) this.#tail = this.#tail.slice(-MAX_BYTES - 1);
  }

  #result(output: string, truncated: boolean, totalLines: number): CollectedOutput {
    return {
      output,
      truncated,
      totalLines,
      totalBytes: this.#totalBytes,
      outputLines: countLines(output),
      outputBytes: Buffer.byteLength(output),
    };
  }
}

/** The raw bytes, held back until it is clear that they do not fit in a result. */
class OutputFile {
  readonly #path: () => string;
  readonly #onPressure: (full: boolean) => void;
  readonly #note: (text: string) => void;
  #held: Buffer[] = [];
  #stream: WriteStream | undefined;
  #opening: Promise<void> | undefined;
  #file: string | undefined;
  #written = 0;
  #dead = false;

  constructor(path: () => string, onPressure: (full: boolean) => void, note: (text: string) => void) {
    this.#path = path;
    this.#onPressure = onPressure;
    this.#note = note;
  }

  get path(): string | undefined {
    return this.#file;
  }

  push(chunk: Buffer, exceeded: boolean): void {
    if (this.#dead) return;
    if (this.#stream !== undefined) {
      this.#write(chunk);
      return;
    }
    this.#held.push(chunk);
    if (!exceeded || this.#opening !== undefined) return;
    this.#onPressure(true);
    this.#opening = this.#open().finally(() => this.#onPressure(false));
  }

  async finish(): Promise<string | undefined> {
    await this.#opening;
    const stream = this.#stream;
    if (stream !== undefined && !stream.destroyed) await new Promise<void>((resolve) => stream.end(() => resolve()));
    return this.#dead && this.#written === 0 ? undefined : this.#file;
  }

  async #open(): Promise<void> {
    try {
      const file = this.#path();
      await mkdir(dirname(file), { recursive: true });
      const stream = createWriteStream(file, { flags: "w", mode: 0o600 });
      await new Promise<void>((resolve, reject) => {
        stream.once("open", () => resolve());
        stream.once("error", reject);
      });
      stream.on("error", (error) => this.#fail(error));
      stream.on("drain", () => this.#onPressure(false));
      this.#file = file;
      this.#stream = stream;
      const held = this.#held;
      this.#held = [];
      for (const chunk of held) this.#write(chunk);
    } catch (error) {
      this.#fail(error);
    }
  }

  #write(chunk: Buffer): void {
    if (this.#written + chunk.length > MAX_FILE_BYTES) {
      this.#dead = true;
      this.#note(`The file with the full output ends after ${formatBytes(this.#written)}`);
      return;
    }
    this.#written += chunk.length;
    if (this.#stream?.write(chunk) === false) this.#onPressure(true);
  }

  #fail(error: unknown): void {
    if (this.#dead) return;
    this.#dead = true;
    this.#held = [];
    this.#onPressure(false);
    this.#note(`The full output could not be kept: ${errorMessage(error)}`);
  }
}
