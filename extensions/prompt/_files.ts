// Text files that go into the system prompt, read again only when they changed.
import { statSync } from "node:fs";
import { open, realpath } from "node:fs/promises";
import { createToken } from "mortise/extension";

/** Longer files are cut, with a line that says so. */
export const MAX_CHARS = 100_000;
/** What so many characters take at most, and one more: the rest of a file that is longer is not read. */
const MAX_BYTES = 4 * MAX_CHARS + 8;

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
    text = await beginOf(realPath);
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
    // Without a half of a character at its end: services refuse a request with one.
    const kept = text.slice(0, end > 0 ? end : MAX_CHARS).replace(/[\ud800-\udbff]$/, "");
    text = `${kept}\n[Cut here: ${realPath} is longer. Read it for the rest.]`;
  }
  return { realPath, text };
}

/** As much of a file as is told. Windows editors write UTF-16 with a mark. */
async function beginOf(path: string): Promise<string> {
  const handle = await open(path);
  try {
    const buffer = Buffer.alloc(Math.min(MAX_BYTES, (await handle.stat()).size));
    let length = 0;
    while (length < buffer.length) {
      const { bytesRead } = await handle.read(buffer, length, buffer.length - length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    const bytes = buffer.subarray(0, length);
    return new TextDecoder(bytes[0] === 0xff && bytes[1] === 0xfe ? "utf-16le" : "utf-8").decode(bytes);
  } finally {
    await handle.close();
  }
}
