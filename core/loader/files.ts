// What a file was when it was read. A save is noticed by comparing this, never by trusting that an event came.
import { createHash } from "node:crypto";
import { readFileSync, readlinkSync, realpathSync, statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** A file's content with the state it was read in. */
export interface ReadFile {
  readonly text: string;
  readonly fingerprint: string;
  readonly hash: string;
}

/** A module is a file that must not be read now: the load is put off, it has not failed. */
export class HeldFileError extends Error {
  constructor(path: string) {
    super(`${path} waits for the consent of the person in front of the host`);
  }
}

/** As many as Linux follows. */
const MAX_LINKS = 40;
const READ_TRIES = 5;
const RETRY_MS = 4;

/**
 * Changes with every write, rename, link and permission change; null when there is no such file (a directory is none).
 * The inode and ctime are part of it because `touch -r` after a save keeps time and size.
 */
export function fingerprint(path: string): string | null {
  try {
    const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
    if (!stats?.isFile()) return null;
    return `${stats.dev}:${stats.ino}:${stats.size}:${stats.mtimeNs}:${stats.ctimeNs}`;
  } catch {
    // A path component is a file, a link goes in circles, or a directory may not be searched: not readable is not there.
    return null;
  }
}

export function isFile(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
  } catch {
    return false;
  }
}

export function isDirectory(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
  } catch {
    return false;
  }
}

/** Bytes of a file; undefined when it is not there. */
export function sizeOf(path: string): number | undefined {
  try {
    const stats = statSync(path, { throwIfNoEntry: false });
    return stats?.isFile() ? stats.size : undefined;
  } catch {
    return undefined;
  }
}

/** The real path, or undefined when nothing is there. */
export function realPath(path: string): string | undefined {
  try {
    return realpathSync.native(path);
  } catch {
    return undefined;
  }
}

/** The absent path at the end of a link, over any number of links; undefined for what is none. */
export function linkTarget(path: string): string | undefined {
  let target: string | undefined;
  // Links that go in circles end nowhere.
  for (let hops = 0; hops < MAX_LINKS; hops++) {
    try {
      const from = target ?? path;
      target = resolve(dirname(from), readlinkSync(from));
    } catch {
      return target;
    }
  }
  return undefined;
}

/** Reads until the file is the same before and after, so that a half-written save is not taken for a whole one. */
export async function readStable(path: string): Promise<ReadFile> {
  for (let attempt = 1; ; attempt++) {
    const before = fingerprint(path);
    const text = await readFile(path, "utf8");
    if (before !== null && before === fingerprint(path)) return { text, fingerprint: before, hash: hashOf(text) };
    if (attempt === READ_TRIES) return { text, fingerprint: before ?? "changing", hash: hashOf(text) };
    await sleep(RETRY_MS);
  }
}

/** Like `readStable` for a synchronous `require`; it cannot wait for a writer. */
export function readNow(path: string): ReadFile {
  const before = fingerprint(path);
  const text = readFileSync(path, "utf8");
  return { text, fingerprint: before ?? "changing", hash: hashOf(text) };
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("base64url");
}
