// The writing end of one session file: appends whole lines in single synchronous writes, keeps what could not be written, and
// replaces as a whole, after a backup, what cannot be appended to: files of older versions, and files that another program cut
// short or put in this one's place.
import { randomBytes } from "node:crypto";
import {
  closeSync,
  constants,
  copyFileSync,
  fstatSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { SessionHeader, TitleSlot } from "./entry.ts";
import { SessionLockedError, SessionWriteError } from "./errors.ts";
import { acquireLock, lockOwner, realFile, type SessionLock } from "./lock.ts";
import { parseLine } from "./salvage.ts";
import { Slices } from "./slices.ts";

const LF = 10;
/** As far as a header is looked for: see read.ts. */
const MAX_HEADER_BYTES = 1024 * 1024;
/** Characters written at once when a whole file is made. */
const CHUNK_LENGTH = 256 * 1024;

/** Where an existing file stood when it was read. */
export interface FileState {
  readonly size: number;
  /** The file is of an older version: the first write replaces it by `lines`. */
  readonly outdated: boolean;
}

export class SessionWriter {
  readonly file: string;
  readonly #allLines: () => Iterable<string>;
  #lock: SessionLock | undefined;
  #fd: number | undefined;
  /** The file behind the descriptor. */
  #identity: { dev: number; ino: number } | undefined;
  #outdated: boolean;
  /** Bytes the file should have; another value means that someone else wrote to it, fewer that something of it is lost. */
  #size: number;
  /** Whether the last byte is known to be a LF. */
  #endKnown = false;
  #pending: string[] = [];
  #error: SessionWriteError | undefined;
  #exists: boolean;
  #wanted: boolean;
  #slicing = false;
  #closed = false;

  /** @param allLines header and entries as they stand in memory when it is called, each without LF. */
  constructor(file: string, state: FileState | undefined, lock: SessionLock | undefined, allLines: () => Iterable<string>) {
    this.file = file;
    this.#allLines = allLines;
    this.#lock = lock;
    this.#exists = state !== undefined;
    this.#wanted = this.#exists;
    this.#size = state?.size ?? 0;
    this.#outdated = state?.outdated ?? false;
  }

  get exists(): boolean {
    return this.#exists;
  }
  get closed(): boolean {
    return this.#closed;
  }
  /** True once the file exists or its creation was tried: from then on entries are to be written. */
  get wanted(): boolean {
    return this.#wanted || this.#slicing;
  }
  /** The failure of the last write; undefined once a later one has caught up. */
  get error(): SessionWriteError | undefined {
    return this.#error;
  }

  /** Creates the file with everything so far. @throws {SessionWriteError | SessionLockedError} and leaves no half file. */
  create(): void {
    if (this.#exists || this.#slicing || this.#closed) return;
    this.#wanted = true;
    this.#guard(() => {
      mkdirSync(dirname(this.file), { recursive: true, mode: 0o700 });
      this.#lock ??= acquireLock(this.file);
      const fd = openSync(this.file, "ax+", 0o600);
      try {
        this.#adopt(fd, writeAll(fd, this.#allLines()));
      } catch (error) {
        closeSync(fd);
        unlinkSync(this.file);
        throw error;
      }
    });
  }

  /**
   * As `create`, in short slices of time, for copies with a long history. The file appears under its name when it is whole;
   * entries appended meanwhile wait and are in it.
   */
  async createInSlices(): Promise<void> {
    if (this.#exists || this.#slicing) return;
    this.#slicing = true;
    try {
      await this.#fillBeside();
    } catch (error) {
      // File systems without hard links, and anything else that a plain write may get past.
      if (SessionLockedError.is(error)) throw error;
      this.#slicing = false;
      this.create();
    } finally {
      this.#slicing = false;
    }
  }

  async #fillBeside(): Promise<void> {
    mkdirSync(dirname(this.file), { recursive: true, mode: 0o700 });
    this.#lock ??= acquireLock(this.file);
    removeAbandoned(dirname(this.file));
    const temporary = `${this.file}.tmp-${process.pid}-${randomBytes(4).toString("hex")}`;
    const fd = openSync(temporary, "ax+", 0o600);
    try {
      const size = await writeInSlices(fd, this.#allLines());
      // No turn of the event loop from here on.
      if (this.#closed) throw new Error("the session was closed while its file was being made");
      const rest = writeAll(fd, this.#pending);
      linkSync(temporary, this.file);
      this.#adopt(fd, size + rest);
    } catch (error) {
      closeSync(fd);
      throw error;
    } finally {
      rmSync(temporary, { force: true });
    }
  }

  /**
   * Writes one line, and before it whatever an earlier failure held back: the memory already holds the entry.
   * @throws {SessionWriteError | SessionLockedError}
   */
  append(line: string): void {
    if (this.#slicing) return void this.#pending.push(line);
    if (!this.#exists) return this.create();
    this.#pending.push(line);
    this.#guard(() => this.#flush());
  }

  /** Tries again what an earlier failure held back. @throws {SessionWriteError} */
  retry(): void {
    if (!this.#exists && this.#wanted) this.create();
    else if (this.#exists && this.#pending.length > 0) this.#guard(() => this.#flush());
  }

  close(): void {
    this.#closed = true;
    this.#closeDescriptor();
    this.#lock?.release();
    this.#lock = undefined;
  }

  #guard(write: () => void): void {
    try {
      write();
      this.#error = undefined;
    } catch (error) {
      if (SessionLockedError.is(error)) throw error;
      this.#error = new SessionWriteError(this.file, error);
      throw this.#error;
    }
  }

  #flush(): void {
    this.#lock?.renew();
    const there = this.#fileNow();
    if (there === undefined) return this.#recreate();
    if (this.#outdated) return this.#migrate();
    const { fd, size } = there;
    if (!there.continues) return this.#replace(size);
    const fence = size === 0 || this.#endsWithNewline(fd, size) ? "" : "\n";
    const bytes = Buffer.from(`${fence}${this.#pending.join("\n")}\n`, "utf8");
    const written = writeSync(fd, bytes);
    this.#size = size + written;
    this.#endKnown = written === bytes.length;
    // What did not fit stays pending; the next write fences the torn part off and repeats the whole line.
    if (!this.#endKnown) throw new Error(`only ${written} of ${bytes.length} bytes were written`);
    this.#pending = [];
  }

  /**
   * The file that has the name now, should it have been removed, moved or replaced under us; undefined when there is none.
   * `continues` is false when it lacks something of what was in it, or is another session's or none.
   */
  #fileNow(): { fd: number; size: number; continues: boolean } | undefined {
    const found = this.#stat();
    if (found === undefined) {
      this.#closeDescriptor();
      return undefined;
    }
    const { size, dev, ino } = found;
    const isWhole = size >= this.#size;
    if (this.#fd !== undefined && dev === this.#identity?.dev && ino === this.#identity.ino) {
      return { fd: this.#fd, size, continues: isWhole };
    }
    this.#closeDescriptor();
    const fd = openSync(this.#path, constants.O_RDWR | constants.O_APPEND);
    this.#hold(fd);
    // A device takes what it takes; only a file is ever replaced.
    const continues = !found.isFile() || (isWhole && sessionIn(fd) === sessionOf(this.#allLines()));
    return { fd, size, continues };
  }

  /** What the lock is for: a symbolic link that was put in the place of the file, or led to it, is not followed elsewhere. */
  get #path(): string {
    return this.#lock?.file ?? this.file;
  }

  /** By name; a folder that cannot be looked into any more is no reason to stop writing to what is open. */
  #stat(): Stats | undefined {
    try {
      return statSync(this.#path, { throwIfNoEntry: false });
    } catch (error) {
      if (this.#fd === undefined) throw error;
      return fstatSync(this.#fd);
    }
  }

  #hold(fd: number): void {
    this.#fd = fd;
    const { dev, ino } = fstatSync(fd);
    this.#identity = { dev, ino };
  }

  #closeDescriptor(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
    this.#endKnown = false;
  }

  /** Looks only when the end is not what our own last write left. */
  #endsWithNewline(fd: number, size: number): boolean {
    if (this.#endKnown && size === this.#size) return true;
    const last = Buffer.alloc(1);
    return readSync(fd, last, 0, 1, size - 1) === 1 && last[0] === LF;
  }

  #recreate(): void {
    mkdirSync(dirname(this.#path), { recursive: true, mode: 0o700 });
    const fd = openSync(this.#path, "ax+", 0o600);
    this.#hold(fd);
    this.#adopt(fd, writeAll(fd, this.#allLines()));
  }

  /** `fd` is the file now, and everything in memory is in it. */
  #adopt(fd: number, size: number): void {
    this.#hold(fd);
    this.#size = size;
    this.#endKnown = true;
    this.#exists = true;
    this.#wanted = true;
    this.#outdated = false;
    this.#pending = [];
  }

  #migrate(): void {
    const { size } = statSync(this.#path);
    if (size !== this.#size) throw new Error("the file was changed by another program after it was read");
    this.#replace(size);
  }

  /** Backup, new file beside, rename: a crash at any point leaves the old or the new file, complete. */
  #replace(sizeNow: number): void {
    const target = this.#path;
    if (sizeNow > 0)
      copyFileSync(target, `${target}.bak-${new Date().toISOString().replace(/[:.]/g, "-")}`, constants.COPYFILE_EXCL);
    const temporary = `${target}.tmp-${process.pid}-${randomBytes(4).toString("hex")}`;
    const fd = openSync(temporary, "ax+", 0o600);
    try {
      const size = writeAll(fd, this.#allLines());
      fsyncSync(fd);
      renameSync(temporary, target);
      this.#closeDescriptor();
      this.#adopt(fd, size);
    } catch (error) {
      closeSync(fd);
      rmSync(temporary, { force: true });
      throw error;
    }
  }
}

/** Id of the session whose header stands at the beginning of a file; undefined when there is none. */
function sessionIn(fd: number): string | undefined {
  for (const length of [4096, MAX_HEADER_BYTES]) {
    const bytes = Buffer.alloc(length);
    const read = readSync(fd, bytes, 0, length, 0);
    const id = sessionOf(bytes.toString("utf8", 0, read).split("\n"));
    if (id !== undefined || read < length) return id;
  }
  return undefined;
}

/** Id in the header among the first lines; a title line and blank ones may stand before it. */
function sessionOf(lines: Iterable<string>): string | undefined {
  for (const line of lines) {
    const { values, damaged } = parseLine(Buffer.from(line));
    if (damaged && values.length === 0) return undefined;
    for (const value of values) {
      const header = SessionHeader.safeParse(value);
      if (header.success) return header.data.id;
      if (!TitleSlot.safeParse(value).success) return undefined;
    }
  }
  return undefined;
}

/** Removes half-made copies that a killed owner left beside the file. Only for the holder of its lock. */
export function removeLeftovers(file: string): void {
  const target = realFile(file);
  const prefix = `${basename(target)}.tmp-`;
  for (const name of readdirSync(dirname(target)))
    if (name.startsWith(prefix)) rmSync(join(dirname(target), name), { force: true });
}

/** Removes half-made copies of owners that were killed: their files never came to be, so nobody opens them and cleans up. */
function removeAbandoned(folder: string): void {
  for (const name of readdirSync(folder)) {
    const file = /^(.+)\.tmp-\d+-[0-9a-f]{8}$/.exec(name)?.[1];
    if (file !== undefined && lockOwner(join(folder, file)) === undefined) rmSync(join(folder, name), { force: true });
  }
}

/** Blocks of text of about one chunk, made of whole lines. */
function* blocks(lines: Iterable<string>): Generator<Buffer> {
  let parts: string[] = [];
  let length = 0;
  for (const line of lines) {
    parts.push(line, "\n");
    length += line.length;
    if (length < CHUNK_LENGTH) continue;
    yield Buffer.from(parts.join(""), "utf8");
    parts = [];
    length = 0;
  }
  yield Buffer.from(parts.join(""), "utf8");
}

function writeBlock(fd: number, bytes: Buffer): number {
  for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at);
  return bytes.length;
}

function writeAll(fd: number, lines: Iterable<string>): number {
  let total = 0;
  for (const block of blocks(lines)) total += writeBlock(fd, block);
  return total;
}

async function writeInSlices(fd: number, lines: Iterable<string>): Promise<number> {
  let total = 0;
  const slices = new Slices();
  for (const block of blocks(lines)) {
    total += writeBlock(fd, block);
    if (slices.due) await slices.rest();
  }
  return total;
}
