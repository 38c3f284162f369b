// One writer per session file: `<real path>.lock` names the owner by pid, start time, boot and host. A lock whose owner is
// gone, or whose pid now belongs to another process, is taken over.
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { closeSync, linkSync, openSync, readFileSync, realpathSync, statSync, unlinkSync, utimesSync, writeSync } from "node:fs";
import { hostname } from "node:os";
import { basename, dirname, join } from "node:path";
import { z } from "zod";
import { isRecord } from "./entry.ts";
import { SessionLockedError } from "./errors.ts";

const LockOwner = z.object({
  pid: z.number().int().positive(),
  /** Start time of the process in the unit its system counts in; empty when it could not be found out. */
  startTime: z.string(),
  bootId: z.string(),
  host: z.string(),
});
export type LockOwner = z.infer<typeof LockOwner>;

/** A lock file without readable content is given this long: whoever made it may still be writing. */
const UNREADABLE_GRACE_MS = 5_000;
/** Whether a process on another host lives cannot be seen; its lock counts this long. */
const FOREIGN_GRACE_MS = 24 * 60 * 60 * 1000;
/** How often an owner that writes says so, for the hosts that cannot see it. */
const RENEWAL_MS = 60 * 60 * 1000;

export interface SessionLock {
  /** The real path of what is locked. */
  readonly file: string;
  readonly lockFile: string;
  /** The owner before died without letting go. */
  readonly takenOver: boolean;
  /**
   * To be called before each write: says now and then that the owner lives. @throws {SessionLockedError} when the lock went to
   * another process, on a host that could not see this one.
   */
  renew(): void;
  /** Removes the lock if it is still ours. Safe to call twice. */
  release(): void;
}

/** The path a session file really has; its last part need not exist yet, its folder must. */
export function realFile(file: string): string {
  try {
    return realpathSync(file);
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
    return join(realpathSync(dirname(file)), basename(file));
  }
}

/** Takes the lock of a session file. @throws {SessionLockedError} when a live process holds it; system errors pass through. */
export function acquireLock(file: string): SessionLock {
  const real = realFile(file);
  const lockFile = `${real}.lock`;
  const content = JSON.stringify(ownIdentity());
  const takenOver = !createExclusive(lockFile, content);
  if (takenOver) {
    const guard = `${lockFile}.takeover`;
    // Two processes may find the same dead owner; the guard lets one of them replace the lock.
    if (!createExclusive(guard, content) && !(removeIfDead(guard) && createExclusive(guard, content))) throw locked(file, guard);
    try {
      if (!removeIfDead(lockFile) || !createExclusive(lockFile, content)) throw locked(file, lockFile);
    } finally {
      remove(guard);
    }
  }
  let held = true;
  let renewedAt = Date.now();
  return {
    file: real,
    lockFile,
    takenOver,
    renew() {
      const at = Date.now();
      if (Math.abs(at - renewedAt) < RENEWAL_MS) return;
      try {
        // Somebody may have removed it by hand.
        if (read(lockFile) !== content && !createExclusive(lockFile, content)) throw locked(file, lockFile);
        utimesSync(lockFile, at / 1000, at / 1000);
        renewedAt = at;
      } catch (error) {
        // Where nothing can be written now, the write that follows says so.
        if (SessionLockedError.is(error)) throw error;
      }
    },
    release() {
      if (held && read(lockFile) === content) remove(lockFile);
      held = false;
    },
  };
}

/** The live owner of a session file, this process included; undefined when it may be taken. */
export function lockOwner(file: string): { pid: number | undefined; host: string | undefined } | undefined {
  return liveOwner(`${realFile(file)}.lock`);
}

function locked(file: string, lockFile: string): SessionLockedError {
  const owner = liveOwner(lockFile);
  return new SessionLockedError(file, owner?.pid, owner?.host, lockFile);
}

function liveOwner(lockFile: string): { pid: number | undefined; host: string | undefined } | undefined {
  const content = read(lockFile);
  if (content === undefined) return undefined;
  const owner = parseOwner(content);
  if (owner === undefined) return age(lockFile) < UNREADABLE_GRACE_MS ? { pid: undefined, host: undefined } : undefined;
  const own = ownIdentity();
  if (owner.host !== own.host) return age(lockFile) < FOREIGN_GRACE_MS ? { pid: owner.pid, host: owner.host } : undefined;
  if (owner.bootId !== own.bootId) return undefined;
  const startTime = startTimeOf(owner.pid);
  if (startTime === undefined) return undefined;
  const reused = startTime !== "" && owner.startTime !== "" && startTime !== owner.startTime;
  return reused ? undefined : { pid: owner.pid, host: undefined };
}

/** True when the lock is gone now. */
function removeIfDead(lockFile: string): boolean {
  if (liveOwner(lockFile) !== undefined) return false;
  remove(lockFile);
  return true;
}

/** Creates the file with its whole content at once, so that nobody ever reads half a lock. False when it exists. */
function createExclusive(path: string, content: string): boolean {
  const temporary = `${path}.${process.pid}.${randomBytes(4).toString("hex")}`;
  try {
    writeNew(temporary, content);
  } catch (error) {
    // A full disk leaves an empty file behind.
    remove(temporary);
    throw error;
  }
  try {
    linkSync(temporary, path);
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    return createWithoutLinks(path, content);
  } finally {
    remove(temporary);
  }
}

/** For file systems without hard links. */
function createWithoutLinks(path: string, content: string): boolean {
  try {
    writeNew(path, content);
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    remove(path);
    throw error;
  }
}

function writeNew(path: string, content: string): void {
  const fd = openSync(path, "wx", 0o600);
  try {
    writeSync(fd, content);
  } finally {
    closeSync(fd);
  }
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    return "";
  }
}

function remove(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
  }
}

function age(path: string): number {
  const info = statSync(path, { throwIfNoEntry: false });
  return info === undefined ? Number.POSITIVE_INFINITY : Date.now() - info.mtimeMs;
}

function parseOwner(content: string): LockOwner | undefined {
  try {
    const result = LockOwner.safeParse(JSON.parse(content));
    return result.success ? result.data : undefined;
  } catch {
    return undefined;
  }
}

let own: LockOwner | undefined;

function ownIdentity(): LockOwner {
  own ??= { pid: process.pid, startTime: startTimeOf(process.pid) ?? "", bootId: bootId(), host: hostname() };
  return own;
}

/** When a process started; "" when it lives but this cannot be found out; undefined when it does not live. */
function startTimeOf(pid: number): string | undefined {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (codeOf(error) === "ESRCH") return undefined;
  }
  try {
    return process.platform === "linux" ? fromProc(pid) : fromPs(pid);
  } catch {
    return "";
  }
}

function fromProc(pid: number): string | undefined {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The command name stands in parentheses and may hold anything, so fields are counted from the last one.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  // A killed process whose parent has not asked for its status yet writes no more.
  return fields[0] === "Z" || fields[0] === "X" ? undefined : (fields[19] ?? "");
}

function fromPs(pid: number): string | undefined {
  const out = execFileSync("ps", ["-o", "stat=,lstart=", "-p", String(pid)], {
    encoding: "utf8",
    timeout: 2_000,
    stdio: ["ignore", "pipe", "ignore"],
  });
  const line = out.trim();
  return line.startsWith("Z") ? undefined : line.replace(/^\S+\s+/, "");
}

function bootId(): string {
  try {
    if (process.platform === "linux") return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    return execFileSync("sysctl", ["-n", "kern.bootsessionuuid"], {
      encoding: "utf8",
      timeout: 2_000,
      stdio: ["ignore", "pipe", "ignore"],
    }).trim();
  } catch {
    return "";
  }
}

function codeOf(error: unknown): unknown {
  return isRecord(error) ? error["code"] : undefined;
}
