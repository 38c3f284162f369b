// Outputs that are too long for the conversation, kept beside the session file in a folder of the same name.
import { closeSync, mkdirSync, mkdtempSync, openSync, readdirSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isRecord } from "./entry.ts";

const NUMBERED = /^(\d+)\./;

export class Artifacts {
  readonly #sessionFile: string | undefined;
  #dir: string | undefined;
  #temporary = false;
  #next: number | undefined;

  /** @param sessionFile undefined keeps the files in a temporary folder until `close`. */
  constructor(sessionFile: string | undefined) {
    this.#sessionFile = sessionFile;
  }

  /** The side-car folder, which may not exist yet; undefined for in-memory sessions that kept nothing so far. */
  get dir(): string | undefined {
    return this.#sessionFile === undefined ? this.#dir : sidecarOf(this.#sessionFile);
  }

  /** Creates the next free `<n>.<tool>.log` (0600), empty, and returns its path; numbers in use are found by looking. */
  create(tool: string): string {
    const dir = this.#ensureDir();
    const suffix = `${tool.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, 64) || "tool"}.log`;
    for (let n = this.#next ?? highest(dir) + 1; ; n++) {
      const file = join(dir, `${n}.${suffix}`);
      try {
        closeSync(openSync(file, "wx", 0o600));
        this.#next = n + 1;
        return file;
      } catch (error) {
        if (!isRecord(error) || error["code"] !== "EEXIST") throw error;
      }
    }
  }

  /** Keeps a whole output; returns the path of its file. */
  write(tool: string, content: string | Uint8Array): string {
    const file = this.create(tool);
    const bytes = typeof content === "string" ? Buffer.from(content, "utf8") : content;
    const fd = openSync(file, "w");
    try {
      for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at);
    } finally {
      closeSync(fd);
    }
    return file;
  }

  /** Removes the temporary folder of an in-memory session; a real side-car stays. */
  close(): void {
    if (this.#temporary && this.#dir !== undefined) rmSync(this.#dir, { recursive: true, force: true });
    this.#dir = undefined;
    this.#temporary = false;
    this.#next = undefined;
  }

  #ensureDir(): string {
    if (this.#dir !== undefined) return this.#dir;
    if (this.#sessionFile === undefined) {
      this.#dir = mkdtempSync(join(tmpdir(), "mortise-artifacts-"));
      this.#temporary = true;
    } else {
      this.#dir = sidecarOf(this.#sessionFile);
      mkdirSync(this.#dir, { recursive: true, mode: 0o700 });
    }
    return this.#dir;
  }
}

/** The folder that belongs to a session file: the same path without `.jsonl`. */
export function sidecarOf(sessionFile: string): string {
  return sessionFile.endsWith(".jsonl") ? sessionFile.slice(0, -".jsonl".length) : `${sessionFile}.files`;
}

function highest(dir: string): number {
  let found = 0;
  for (const name of readdirSync(dir)) found = Math.max(found, Number(NUMBERED.exec(name)?.[1] ?? 0));
  return found;
}
