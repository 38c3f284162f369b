// The writing end of one session file: appends whole lines in single synchronous writes, keeps what could not be written, and
// replaces files of older versions as a whole.
import { randomBytes } from "node:crypto";
import {
  closeSync,
  constants,
  copyFileSync,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  statSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { SessionLockedError, SessionWriteError } from "./errors.ts";
import { acquireLock, realFile, type SessionLock } from "./lock.ts";

const LF = 10;
const REWRITE_CHUNK_BYTES = 1024 * 1024;

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
  #outdated: boolean;
  /** Bytes the file should have; another value means that someone else wrote to it. */
  #size: number;
  /** Whether the last byte is known to be a LF. */
  #endKnown = false;
  #pending: string[] = [];
  #error: SessionWriteError | undefined;
  #exists: boolean;

  /** @param allLines header and entries as they stand in memory, each without LF. */
  constructor(file: string, state: FileState | undefined, lock: SessionLock | undefined, allLines: () => Iterable<string>) {
    this.file = file;
    this.#allLines = allLines;
    this.#lock = lock;
    this.#exists = state !== undefined;
    this.#size = state?.size ?? 0;
    this.#outdated = state?.outdated ?? false;
  }

  get exists(): boolean {
    return this.#exists;
  }
  /** The failure of the last write; undefined once a later one has caught up. */
  get error(): SessionWriteError | undefined {
    return this.#error;
  }

  /** Creates the file with everything so far. @throws {SessionWriteError | SessionLockedError} and leaves no half file. */
  create(): void {
    if (this.#exists) return;
    this.#guard(() => {
      mkdirSync(dirname(this.file), { recursive: true, mode: 0o700 });
      this.#lock ??= acquireLock(this.file);
      const fd = openSync(this.file, "ax+", 0o600);
      try {
        this.#size = writeAll(fd, this.#allLines());
      } catch (error) {
        closeSync(fd);
        unlinkSync(this.file);
        throw error;
      }
      this.#fd = fd;
      this.#exists = true;
      this.#endKnown = true;
      this.#pending = [];
    });
  }

  /** Writes one line, and before it whatever an earlier failure held back. @throws {SessionWriteError} */
  append(line: string): void {
    if (!this.#exists) throw new SessionWriteError(this.file, "the file has not been created");
    this.#pending.push(line);
    this.#guard(() => this.#flush());
  }

  /** Tries again what an earlier failure held back. @throws {SessionWriteError} */
  retry(): void {
    if (this.#exists && this.#pending.length > 0) this.#guard(() => this.#flush());
  }

  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
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
    if (this.#outdated) return this.#replace();
    this.#fd ??= this.#openExisting();
    let info = fstatSync(this.#fd);
    if (info.nlink === 0) {
      // Removed or replaced under us: go on in the file that has the name now, or make it again from memory.
      closeSync(this.#fd);
      this.#fd = undefined;
      this.#endKnown = false;
      if (statSync(this.file, { throwIfNoEntry: false }) === undefined) return this.#recreate();
      this.#fd = this.#openExisting();
      info = fstatSync(this.#fd);
    }
    const fence = info.size === 0 || this.#endsWithNewline(this.#fd, info.size) ? "" : "\n";
    const bytes = Buffer.from(`${fence}${this.#pending.join("\n")}\n`, "utf8");
    const written = writeSync(this.#fd, bytes);
    this.#size = info.size + written;
    this.#endKnown = written === bytes.length;
    // What did not fit stays pending; the next write fences the torn part off and repeats the whole line.
    if (!this.#endKnown) throw new Error(`only ${written} of ${bytes.length} bytes were written`);
    this.#pending = [];
  }

  #openExisting(): number {
    return openSync(this.file, constants.O_RDWR | constants.O_APPEND);
  }

  /** Looks only when the end is not what our own last write left. */
  #endsWithNewline(fd: number, size: number): boolean {
    if (this.#endKnown && size === this.#size) return true;
    const last = Buffer.alloc(1);
    return readSync(fd, last, 0, 1, size - 1) === 1 && last[0] === LF;
  }

  #recreate(): void {
    mkdirSync(dirname(this.file), { recursive: true, mode: 0o700 });
    const fd = openSync(this.file, "ax+", 0o600);
    this.#size = writeAll(fd, this.#allLines());
    this.#fd = fd;
    this.#endKnown = true;
    this.#pending = [];
  }

  /** Backup, new file beside, rename: a crash at any point leaves the old or the new file, complete. */
  #replace(): void {
    const target = realFile(this.file);
    const before = statSync(target);
    if (before.size !== this.#size) throw new Error("the file was changed by another program after it was read");
    copyFileSync(target, `${target}.bak-${new Date().toISOString().replace(/[:.]/g, "-")}`, constants.COPYFILE_EXCL);
    const temporary = `${target}.tmp-${process.pid}-${randomBytes(4).toString("hex")}`;
    const fd = openSync(temporary, "ax+", 0o600);
    try {
      this.#size = writeAll(fd, this.#allLines());
      fsyncSync(fd);
      renameSync(temporary, target);
    } catch (error) {
      closeSync(fd);
      unlinkSync(temporary);
      this.#size = before.size;
      throw error;
    }
    this.#fd = fd;
    this.#outdated = false;
    this.#endKnown = true;
    this.#pending = [];
  }
}

function writeAll(fd: number, lines: Iterable<string>): number {
  let total = 0;
  let parts: string[] = [];
  let length = 0;
  const flush = (): void => {
    const bytes = Buffer.from(parts.join(""), "utf8");
    for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at);
    total += bytes.length;
    parts = [];
    length = 0;
  };
  for (const line of lines) {
    parts.push(line, "\n");
    length += line.length;
    if (length >= REWRITE_CHUNK_BYTES) flush();
  }
  flush();
  return total;
}
