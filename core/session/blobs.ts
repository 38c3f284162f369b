// Images and long texts that oh-my-pi and veyyon keep beside the session as content-addressed files.
import { createHash } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { isRecord } from "./entry.ts";

const REFERENCE = /^(blob|blobtext):sha256:([0-9a-f]{64})$/;
/** How far above the file the folder is looked for: sub-agents' files lie deeper than their parents'. */
const LEVELS = 6;
const MAX_BLOB_BYTES = 64 * 1024 * 1024;

/** Cheap test on the text of a line, so that lines without references are never walked. */
export function mayHoldBlobs(line: string): boolean {
  return line.includes(":sha256:") && (line.includes("blob:sha256:") || line.includes("blobtext:sha256:"));
}

/** Resolves references of one session file. What is missing or does not match its hash is left as it stands. */
export class Blobs {
  readonly #dir: string | undefined;
  readonly #contents = new Map<string, string | undefined>();

  constructor(sessionFile: string) {
    this.#dir = findFolder(dirname(sessionFile));
  }

  /** Changes `value` in place; it comes straight from JSON.parse. */
  resolve(value: unknown): void {
    if (this.#dir === undefined) return;
    const open: unknown[] = [value];
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      if (!Array.isArray(at) && !isRecord(at)) continue;
      for (const [key, member] of Object.entries(at)) {
        if (typeof member === "string") Reflect.set(at, key, this.#content(member) ?? member);
        else if (typeof member === "object" && member !== null) open.push(member);
      }
    }
  }

  #content(reference: string): string | undefined {
    const match = REFERENCE.exec(reference);
    const hash = match?.[2];
    if (hash === undefined || this.#dir === undefined) return undefined;
    if (!this.#contents.has(reference)) {
      this.#contents.set(reference, load(join(this.#dir, hash), hash, match?.[1] === "blobtext" ? "utf8" : "base64"));
    }
    return this.#contents.get(reference);
  }
}

function load(file: string, hash: string, encoding: "utf8" | "base64"): string | undefined {
  try {
    const info = statSync(file);
    if (!info.isFile() || info.size > MAX_BLOB_BYTES) return undefined;
    const bytes = readFileSync(file);
    return createHash("sha256").update(bytes).digest("hex") === hash ? bytes.toString(encoding) : undefined;
  } catch {
    return undefined;
  }
}

function findFolder(from: string): string | undefined {
  let at = from;
  for (let level = 0; level < LEVELS; level++) {
    const candidate = join(at, "blobs");
    if (statSync(candidate, { throwIfNoEntry: false })?.isDirectory()) return candidate;
    const up = dirname(at);
    if (up === at) return undefined;
    at = up;
  }
  return undefined;
}
