// Text files that go into the system prompt, read again only when they changed.
import { statSync } from "node:fs";
import { readFile, realpath } from "node:fs/promises";
import { createToken } from "mortise/extension";

/** Longer files are cut, with a line that says so. */
export const MAX_CHARS = 100_000;

export interface PromptText {
  /** Without links; two paths of one file have the same. */
  readonly realPath: string;
  readonly text: string;
}

export interface PromptFiles {
  /** The text of a file; undefined when there is none, it is empty or no text. */
  read(path: string): Promise<PromptText | undefined>;
}

export const PromptFiles = createToken<PromptFiles>("prompt files");

interface Cached {
  readonly stamp: string;
  readonly value: PromptText | undefined;
}

export class PromptFileCache implements PromptFiles {
  readonly #cached = new Map<string, Cached>();

  async read(path: string): Promise<PromptText | undefined> {
    const stamp = stampOf(path);
    if (stamp === undefined) {
      this.#cached.delete(path);
      return undefined;
    }
    const cached = this.#cached.get(path);
    if (cached?.stamp === stamp) return cached.value;
    const value = await load(path);
    this.#cached.set(path, { stamp, value });
    return value;
  }
}

/**
 * Changes with the file; undefined when there is none. Asked synchronously: a dozen places are looked at before every request,
 * most of them hold nothing, and a thread's round trip costs twenty times the call.
 */
function stampOf(path: string): string | undefined {
  try {
    const found = statSync(path, { bigint: true, throwIfNoEntry: false });
    return found?.isFile() ? `${found.dev} ${found.ino} ${found.size} ${found.mtimeNs}` : undefined;
  } catch {
    return undefined;
  }
}

async function load(path: string): Promise<PromptText | undefined> {
  let realPath: string;
  let text: string;
  try {
    realPath = await realpath(path);
    text = await readFile(realPath, "utf8");
  } catch {
    return undefined;
  }
  if (text.includes("\0")) return undefined;
  text = text
    .replace(/^\uFEFF/, "")
    .replaceAll("\r\n", "\n")
    .trim();
  if (text === "") return undefined;
  if (text.length > MAX_CHARS) {
    const end = text.lastIndexOf("\n", MAX_CHARS);
    text = `${text.slice(0, end > 0 ? end : MAX_CHARS)}\n[Cut here: ${realPath} is longer. Read it for the rest.]`;
  }
  return { realPath, text };
}
