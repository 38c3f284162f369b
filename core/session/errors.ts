// What can go wrong with a session file. Texts never hold content of the file: it may not be a session at all.
import { CommandError } from "../kernel/errors.ts";

/** Another live process (or another log of this one) writes to the file. `pid` is undefined when the lock cannot be read. */
export class SessionLockedError extends CommandError {
  readonly file: string;
  readonly pid: number | undefined;
  constructor(file: string, pid: number | undefined, host: string | undefined, lockFile: string) {
    const owner = pid === undefined ? "another process" : `process ${pid}${host === undefined ? "" : ` on ${host}`}`;
    super(`Session "${file}" is in use by ${owner}; close it there, or delete "${lockFile}" if that process is gone`, "locked");
    this.file = file;
    this.pid = pid;
  }
  static override is(value: unknown): value is SessionLockedError {
    return CommandError.is(value) && value.code === "locked" && "pid" in value;
  }
}

/** The file is missing, empty, no regular file, or does not start with a session header. It was not modified. */
export class SessionFormatError extends CommandError {
  readonly file: string;
  constructor(file: string, problem: string, code: "not_found" | "invalid_params" = "invalid_params") {
    super(`Cannot resume session "${file}": ${problem}. The file was not modified`, code);
    this.file = file;
  }
}

/**
 * An entry could not be written. It is kept in memory and tried again with the next append, so nothing is lost while the
 * process lives. `cause` is the system's error.
 */
export class SessionWriteError extends Error {
  override readonly name = "SessionWriteError";
  readonly file: string;
  constructor(file: string, cause: unknown) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    super(`Cannot write session "${file}": ${reason}`, { cause });
    this.file = file;
  }
}
