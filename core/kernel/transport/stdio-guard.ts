// Takes standard input and output for the protocol before any extension is evaluated. Afterwards everything that other code in this
// process, or a child of it, believes to be stdout is stderr, and stdin looks empty. Installed by main.ts only.
// Limits: native addons, and `fs.writeSync(1)` or inherited stdio inside a worker thread, which has built-in modules of its own.
import { ReadStream } from "node:fs";
import { Readable, Writable } from "node:stream";
import { guardChildProcesses } from "./guard-children.ts";
import { guardFileDescriptors, type OriginalFs } from "./guard-fs.ts";
import { type Patches, patchList } from "./patches.ts";

/** The private handles, and how to put everything back. */
export interface ClaimedStdio {
  /** Protocol input. Nobody else can reach it. */
  readonly stdin: Readable;
  /** Protocol output. Nobody else can reach it. */
  readonly stdout: Writable;
  /** Bytes that `stdout` holds and the system has not taken yet. */
  readonly unsentBytes: () => number;
  /** Undoes the claim (for tests). */
  readonly restore: () => void;
}

/** Stray output is dropped while this much of it waits for a host that does not read stderr. */
const MAX_STRAY_BYTES = 4_194_304;

/** Claims stdin and stdout of this process. Call once, before any code that is not ours runs. */
export function claimStdio(): ClaimedStdio {
  const patches = patchList();
  // Both getters open the stream on first use, so they are read before fs is patched under them.
  const stdout: Writable & HasHandle = process.stdout;
  const stderr = quietStderr(patches);
  const realStdin: Readable = process.stdin;
  const originals = guardFileDescriptors(patches);
  guardChildProcesses(patches);

  const standIn = new StrayOutput(stderr);
  const empty = new EmptyInput();
  patches.define(process, "stdout", { configurable: true, enumerable: true, get: () => standIn });
  patches.define(process, "stdin", { configurable: true, enumerable: true, get: () => empty });
  patches.set(console as unknown as Record<string, unknown>, "_stdout", standIn);
  patches.sync();
  return {
    stdin: privateStdin(realStdin, originals),
    stdout,
    unsentBytes: () => stdout._handle?.writeQueueSize ?? 0,
    restore: () => patches.undo(),
  };
}

interface HasHandle {
  readonly _handle?: { readonly writeQueueSize?: number } | null;
}

/** A file as stdin is read through `fs.read`, which is patched: such a stream gets the original functions. */
function privateStdin(stdin: Readable, originals: OriginalFs): Readable {
  if (!(stdin instanceof ReadStream)) return stdin;
  return originals.createReadStream("", { fd: 0, autoClose: false, fs: originals });
}

/** Writes to stderr that can neither crash nor loop: after the first failure everything is dropped. */
function quietStderr(patches: Patches): StrayTarget {
  const stream = process.stderr;
  const write = stream.write.bind(stream);
  let dead = false;
  const die = () => {
    if (dead) return;
    dead = true;
    // Each further write would be one more failing system call, for console.error and loggers as well.
    patches.set(stream as unknown as Record<string, unknown>, "write", (...args: unknown[]) => {
      const done = args.at(-1);
      if (typeof done === "function") process.nextTick(done);
      return true;
    });
  };
  stream.on("error", die);
  patches.onUndo(() => stream.off("error", die));
  return {
    write: (bytes) => {
      if (dead || stream.writableLength >= MAX_STRAY_BYTES) return;
      try {
        write(bytes);
      } catch {
        // A file as stderr is written at once and throws, on a full disk for example. There is no better place to tell.
        die();
      }
    },
  };
}

interface StrayTarget {
  readonly write: (bytes: Uint8Array) => void;
}

/** What others get as `process.stdout`. Cannot be ended or destroyed, never asks to wait. */
class StrayOutput extends Writable {
  readonly fd = 1;
  readonly isTTY = false;
  readonly #target: StrayTarget;
  constructor(target: StrayTarget) {
    super({ decodeStrings: true });
    this.#target = target;
    this.on("error", () => {});
  }
  override _write(chunk: Uint8Array, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#target.write(chunk);
    done();
  }
  override end(...args: unknown[]): this {
    const [chunk] = args;
    if (typeof chunk === "string" || chunk instanceof Uint8Array) this.write(chunk);
    const done = args.findLast((arg) => typeof arg === "function");
    if (typeof done === "function") process.nextTick(() => done());
    return this;
  }
  override destroy(): this {
    return this;
  }
  ref(): this {
    return this;
  }
  unref(): this {
    return this;
  }
}

/** What others get as `process.stdin`: a stream that is at its end. */
class EmptyInput extends Readable {
  readonly fd = 0;
  readonly isTTY = false;
  override _read(): void {
    this.push(null);
  }
  setRawMode(): this {
    return this;
  }
  ref(): this {
    return this;
  }
  unref(): this {
    return this;
  }
}
