// File functions that name fd 0 or fd 1, as a number or as a path like /dev/stdout, get an empty input and stderr instead.
// The default export of a built-in is the object that everybody shares; `import * as` would be a frozen view of it.
import fs from "node:fs";
import promises from "node:fs/promises";
import type { Patches } from "./patches.ts";

type Callable = (...args: unknown[]) => unknown;

/** The unpatched functions a file stream of our own works with. */
export interface OriginalFs {
  readonly open: typeof fs.open;
  readonly read: typeof fs.read;
  readonly close: typeof fs.close;
  readonly createReadStream: typeof fs.createReadStream;
}

const STDERR = 2;
const STDERR_PATH = "/dev/stderr";
/** First argument is a descriptor. */
const BY_FD = ["read", "readSync", "readv", "readvSync", "write", "writeSync", "writev", "writevSync"] as const;
/** First argument is a path or a descriptor. */
const BY_TARGET = ["readFile", "readFileSync", "writeFile", "writeFileSync", "appendFile", "appendFileSync"] as const;
/** First argument is a path, second the flags. */
const OPENING = ["open", "openSync"] as const;

const STDIO_PATH = /^\/(?:dev\/(?:fd\/([01])|std(in|out))|proc\/(?:self|thread-self|(\d+))\/fd\/([01]))$/;

/** Installs the mapping; gives back what streams of our own need. */
export function guardFileDescriptors(patches: Patches): OriginalFs {
  const originals: OriginalFs = { open: fs.open, read: fs.read, close: fs.close, createReadStream: fs.createReadStream };
  // Node opens the standard descriptors at start when they are closed, so this one is never 0 to 2.
  const nothing = fs.openSync("/dev/null", "r+");
  patches.onUndo(() => fs.closeSync(nothing));
  const byFd = (value: unknown) => (value === 0 ? nothing : value === 1 ? STDERR : value);
  const byTarget = (value: unknown) => {
    const slot = standardSlot(value);
    return slot === undefined ? byFd(value) : slot === "in" ? nothing : STDERR;
  };

  const members = fs as unknown as Record<string, unknown>;
  for (const name of BY_FD) wrap(patches, members, name, ([fd, ...rest]) => [byFd(fd), ...rest]);
  for (const name of BY_TARGET) wrap(patches, members, name, ([target, ...rest]) => [byTarget(target), ...rest]);
  for (const name of OPENING) wrap(patches, members, name, safeOpening);
  for (const name of ["createReadStream", "createWriteStream"]) {
    wrap(patches, members, name, ([path, options]) => safeStream(path, options, byFd));
  }
  const asyncMembers = promises as unknown as Record<string, unknown>;
  wrap(patches, asyncMembers, "open", safeOpening);
  wrap(patches, asyncMembers, "readFile", ([path, ...rest]) => [standardSlot(path) === undefined ? path : "/dev/null", ...rest]);
  for (const name of ["writeFile", "appendFile"]) wrap(patches, asyncMembers, name, safeWriting);

  // A stream opened on a standard descriptor closes it at its end; the next file opened would then get that number.
  patches.set(members, "close", (fd: unknown, done?: unknown) => {
    if (!isStandard(fd)) return (originals.close as Callable)(fd, done);
    if (typeof done === "function") process.nextTick(() => done(null));
  });
  const closeSync = fs.closeSync as Callable;
  patches.set(members, "closeSync", (fd: unknown) => (isStandard(fd) ? undefined : closeSync(fd)));
  return originals;
}

function isStandard(fd: unknown): boolean {
  return fd === 0 || fd === 1 || fd === STDERR;
}

/** Which standard stream a path names, if any. */
function standardSlot(path: unknown): "in" | "out" | undefined {
  if (typeof path !== "string" || path.length > 32 || path.charCodeAt(0) !== 0x2f) return undefined;
  const match = STDIO_PATH.exec(path);
  if (match === null || (match[3] !== undefined && Number(match[3]) !== process.pid)) return undefined;
  return match[2] === "in" || (match[1] ?? match[4]) === "0" ? "in" : "out";
}

/** Always appends: "w" would empty the log file that stderr may be. */
function safeOpening([path, flags, ...rest]: readonly unknown[]): unknown[] {
  const slot = standardSlot(path);
  if (slot === undefined) return [path, flags, ...rest];
  if (slot === "in") return ["/dev/null", flags, ...rest];
  return typeof flags === "function" ? [STDERR_PATH, "a", flags, ...rest] : [STDERR_PATH, "a", ...rest];
}

function safeWriting([path, data, options]: readonly unknown[]): unknown[] {
  if (standardSlot(path) === undefined) return [path, data, options];
  const encoding = typeof options === "string" ? options : undefined;
  return [STDERR_PATH, data, { ...(typeof options === "object" ? options : { encoding }), flag: "a" }];
}

function safeStream(path: unknown, options: unknown, byFd: (value: unknown) => unknown): unknown[] {
  const slot = standardSlot(path);
  if (slot === "in") return ["/dev/null", options];
  if (slot === "out") return [STDERR_PATH, { ...(typeof options === "object" ? options : {}), flags: "a" }];
  if (typeof options !== "object" || options === null || !("fd" in options)) return [path, options];
  return [path, { ...options, fd: byFd(options.fd) }];
}

/** Replaces a function by one that maps its arguments first. */
function wrap(
  patches: Patches,
  members: Record<string, unknown>,
  name: string,
  map: (args: readonly unknown[]) => readonly unknown[],
): void {
  const original = members[name];
  if (typeof original !== "function") return;
  const wrapped = function (this: unknown, ...args: unknown[]): unknown {
    return Reflect.apply(original, this, map(args));
  };
  patches.set(members, name, dressed(wrapped, original));
}

/** Keeps what hangs on the original: util.promisify.custom, name, length. */
function dressed(wrapped: object, original: object): object {
  for (const key of Reflect.ownKeys(original)) {
    const descriptor = Object.getOwnPropertyDescriptor(original, key);
    if (key !== "prototype" && descriptor !== undefined) Object.defineProperty(wrapped, key, descriptor);
  }
  return wrapped;
}
