// Running ripgrep: no shell, every value behind `=` or `--`, so that none of them can become a flag. Records are handed over as
// they come; the caller stops the search when it has enough.
import { type ChildProcess, spawn } from "node:child_process";
import type { Readable } from "node:stream";
import { errorMessage, ToolError } from "mortise/extension";

const TIMEOUT_MS = 30_000;
/** A record beyond this (one endless line) is left out. */
const MAX_RECORD = 4 * 1024 * 1024;
/** 128 KiB is the limit of Linux for one argument; nobody searches for that much. */
const MAX_ARGUMENT = 20_000;

/** How long records are handled in one go. */
const TURN_MS = 8;

export interface RgOptions {
  cwd: string;
  signal: AbortSignal;
  /** Byte that ends a record. */
  separator: 0 | 10;
  /** Records without these bytes are of no interest: where a whole block has none, its records are not even taken apart. */
  needle?: Buffer | undefined;
  /** Return false to stop. */
  onRecord(record: string): boolean;
}

export interface RgOutcome {
  /** The caller has stopped it. */
  stopped: boolean;
  timedOut: boolean;
  /** 0 found, 1 nothing found, 2 something went wrong; undefined when it was ended. */
  code: number | undefined;
  errors: string;
  droppedRecords: number;
}

/** @throws {ToolError} when ripgrep is not there */
export async function runRipgrep(args: readonly string[], options: RgOptions): Promise<RgOutcome> {
  options.signal.throwIfAborted();
  const child = await start(args, options.cwd);
  const outcome: RgOutcome = { stopped: false, timedOut: false, code: undefined, errors: "", droppedRecords: 0 };
  const timer = setTimeout(() => {
    outcome.timedOut = true;
    child.kill("SIGKILL");
  }, TIMEOUT_MS);
  const onAbort = () => child.kill("SIGKILL");
  options.signal.addEventListener("abort", onAbort, { once: true });
  child.stderr?.on("data", (chunk: Buffer) => {
    if (outcome.errors.length < 4000) outcome.errors += chunk.toString();
  });
  try {
    await readRecords(child, options, outcome);
    if (!outcome.stopped) outcome.code = await exitCode(child);
  } finally {
    clearTimeout(timer);
    options.signal.removeEventListener("abort", onAbort);
    child.kill("SIGKILL");
  }
  options.signal.throwIfAborted();
  return outcome;
}

/** A value for the command line. @throws {ToolError} when no program could take it */
export function argument(value: string, name: string): string {
  if (value.includes("\0")) throw new ToolError(`Cannot search: ${name} holds a NUL character`);
  if (value.length > MAX_ARGUMENT) {
    throw new ToolError(`Cannot search: ${name} is ${value.length} characters long; at most ${MAX_ARGUMENT} are possible`);
  }
  return value;
}

async function start(args: readonly string[], cwd: string): Promise<ChildProcess> {
  const program = await import("@vscode/ripgrep").then(
    ({ rgPath }) => rgPath,
    (error: unknown) => {
      throw new ToolError(`Cannot search: ripgrep is not installed (${errorMessage(error)})`, { cause: error });
    },
  );
  const child = spawn(program, ["--no-config", ...args], { cwd, stdio: ["ignore", "pipe", "pipe"] });
  await new Promise<void>((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", (error) => reject(new ToolError(`Cannot search: ${errorMessage(error)}`, { cause: error })));
  });
  return child;
}

/** Blocks are decoded as a whole, which costs far less than record by record. */
async function readRecords(child: ChildProcess, options: RgOptions, outcome: RgOutcome): Promise<void> {
  const separator = String.fromCharCode(options.separator);
  let turn = performance.now();
  for await (const block of blocksOf(child.stdout, options, outcome)) {
    let count = 0;
    for (const record of block.toString().split(separator)) {
      if (!options.onRecord(record)) {
        outcome.stopped = true;
        return;
      }
      // Others wait while records are read: buffered chunks follow each other without a turn of the loop.
      if (++count % 128 === 0 && performance.now() - turn > TURN_MS) {
        await nextTurn();
        if (options.signal.aborted) return;
        turn = performance.now();
      }
    }
  }
}

/**
 * Whole records of the output, those left out that cannot hold the needle. Chunks are looked at as they come: handing each of
 * thousands through a promise would take longer than ripgrep needs to make them.
 */
async function* blocksOf(stdout: Readable | null, options: RgOptions, outcome: RgOutcome): AsyncGenerator<Buffer> {
  if (stdout === null) return;
  const blocks: Buffer[] = [];
  const cutter = new Cutter(options.separator, () => outcome.droppedRecords++);
  let ended = false;
  let wake = () => {};
  stdout.on("data", (chunk: Buffer) => {
    const block = cutter.push(chunk);
    if (block === undefined || (options.needle !== undefined && !block.includes(options.needle))) return;
    blocks.push(block);
    stdout.pause();
    wake();
  });
  for (const event of ["end", "close", "error"]) {
    stdout.once(event, () => {
      ended = true;
      wake();
    });
  }
  for (;;) {
    const block = blocks.shift();
    if (block !== undefined) {
      yield block;
    } else if (ended) {
      return;
    } else {
      const woken = new Promise<void>((resolve) => {
        wake = resolve;
      });
      stdout.resume();
      await woken;
    }
  }
}

/** Cuts a stream into blocks of whole records. A record that is too long is dropped; one without an end is none. */
class Cutter {
  readonly #separator: number;
  readonly #onDropped: () => void;
  #pending: Buffer[] = [];
  #size = 0;

  constructor(separator: number, onDropped: () => void) {
    this.#separator = separator;
    this.#onDropped = onDropped;
  }

  push(data: Buffer): Buffer | undefined {
    let chunk = data;
    if (this.#size > MAX_RECORD) {
      const end = chunk.indexOf(this.#separator);
      if (end < 0) return undefined;
      this.#onDropped();
      chunk = chunk.subarray(end + 1);
      this.#size = 0;
    }
    const last = chunk.lastIndexOf(this.#separator);
    const block = last < 0 ? undefined : Buffer.concat([...this.#pending, chunk.subarray(0, last)]);
    const rest = last < 0 ? chunk : chunk.subarray(last + 1);
    this.#pending = last < 0 ? [...this.#pending, rest] : [rest];
    this.#size = last < 0 ? this.#size + rest.length : rest.length;
    if (this.#size > MAX_RECORD) this.#pending = [];
    return block;
  }
}

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

function exitCode(child: ChildProcess): Promise<number | undefined> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve(child.exitCode ?? undefined);
  return new Promise((resolve) => child.once("exit", (code) => resolve(code ?? undefined)));
}
