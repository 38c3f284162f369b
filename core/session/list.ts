// Finding sessions without reading them whole: the first 4 KB and the last 32 KB of a file say what a list needs.
import { type FileHandle, open, readdir, stat } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { CommandError } from "../kernel/errors.ts";
import { isRecord, SessionHeader, TitleSlot } from "./entry.ts";
import { lockOwner } from "./lock.ts";
import { parseLine } from "./salvage.ts";
import { bucketsOf, realCwd } from "./store.ts";

const HEAD_BYTES = 4096;
/** Read when the first piece ends inside the header: other programs keep lists of folders and files in it. */
const LONG_HEAD_BYTES = 256 * 1024;
const TAIL_BYTES = 32 * 1024;
/** Files looked at side by side. */
const PARALLEL = 16;
const PREVIEW_LENGTH = 200;

export interface SessionInfo {
  readonly file: string;
  readonly id: string;
  readonly cwd: string;
  readonly name: string | undefined;
  /** Unix milliseconds. */
  readonly created: number;
  readonly modified: number;
  /** Bytes. */
  readonly size: number;
  readonly parentSession: string | undefined;
  /** The beginning of the first user message, as far as the head of the file shows it. */
  readonly firstMessage: string | undefined;
}

/**
 * Sessions, the last changed first; those of one working directory, or of all when `cwd` is undefined. Files without a
 * header and sessions without messages are left out. A name given in the middle of a long file may be missed. No more files
 * are looked into than it takes to fill `limit`. @throws {CommandError} stale_cursor when there is no file `after` any more.
 */
export async function listSessions(
  sessionsDir: string,
  cwd?: string,
  page: { after?: string | undefined; limit?: number | undefined } = {},
): Promise<SessionInfo[]> {
  const files = await byChange(await sessionFiles(sessionsDir, cwd));
  const from = page.after === undefined ? 0 : files.indexOf(page.after) + 1;
  if (page.after !== undefined && from === 0) {
    throw new CommandError("Session list cursor is stale: start again without it", "stale_cursor");
  }
  const infos: SessionInfo[] = [];
  for await (const info of described(files.slice(from), cwd)) if (infos.push(info) === page.limit) break;
  return infos;
}

/** The sessions of `cwd` that no live process writes to, the last changed first (`--continue`). */
export async function* unlockedSessions(sessionsDir: string, cwd: string): AsyncGenerator<string> {
  const files = await byChange(await sessionFiles(sessionsDir, cwd));
  for await (const { file } of described(files, cwd)) if (isFree(file)) yield file;
}

/** What files say, in their order, a few at a time. */
async function* described(files: readonly string[], cwd: string | undefined): AsyncGenerator<SessionInfo> {
  for (let at = 0; at < files.length; at += PARALLEL) {
    const batch = await Promise.all(files.slice(at, at + PARALLEL).map((file) => sessionInfo(file)));
    for (const info of batch) if (info !== undefined && (cwd === undefined || sameCwd(info.cwd, cwd))) yield info;
  }
}

/** The last changed first. What cannot be looked at is left out. */
async function byChange(found: readonly Found[]): Promise<string[]> {
  const dated: { file: string; modified: number }[] = [];
  for (let at = 0; at < found.length; at += PARALLEL) {
    const batch = found.slice(at, at + PARALLEL).map(async ({ file }) => ({ file, modified: await modifiedAt(file) }));
    for (const { file, modified } of await Promise.all(batch)) if (modified !== undefined) dated.push({ file, modified });
  }
  return dated.sort((a, b) => b.modified - a.modified || (a.file < b.file ? 1 : -1)).map(({ file }) => file);
}

async function modifiedAt(file: string): Promise<number | undefined> {
  try {
    return (await stat(file)).mtimeMs;
  } catch {
    return undefined;
  }
}

/**
 * A path (anything with a slash, a backslash or the ending .jsonl; relative ones from `cwd`), else the beginning of an id, of
 * a file name, or the end of an id, whatever the case: first among the sessions of `cwd`, then all, the newest first.
 * @throws {CommandError} not_found. Whether a named path is a session is seen when it is opened.
 */
export async function resolveSession(target: string, options: { cwd: string; sessionsDir: string }): Promise<string> {
  if (/[/\\]|\.jsonl$/.test(target)) return resolve(options.cwd, target);
  const wanted = target.toLowerCase();
  if (wanted !== "") {
    for (const cwd of [options.cwd, undefined]) {
      const files = await sessionFiles(options.sessionsDir, cwd);
      const match =
        files.find(({ name, id }) => id.startsWith(wanted) || name.startsWith(wanted)) ??
        files.find(({ id }) => id.endsWith(wanted));
      if (match !== undefined) return match.file;
    }
  }
  throw new CommandError(`No session matches "${target}"; give a path or the beginning of a session id`, "not_found");
}

/** What the ends of one file say; undefined when it is no session or holds no message. */
export async function sessionInfo(file: string): Promise<SessionInfo | undefined> {
  let handle: FileHandle;
  try {
    handle = await open(file, "r");
  } catch {
    return undefined;
  }
  try {
    const info = await handle.stat();
    if (!info.isFile() || info.size === 0) return undefined;
    const start = await readBytes(handle, 0, HEAD_BYTES);
    const isCut = info.size > HEAD_BYTES && headerOf(values(start)) === undefined;
    const head = isCut ? await readBytes(handle, 0, LONG_HEAD_BYTES) : start;
    const tailStart = Math.max(0, info.size - TAIL_BYTES);
    const tail = await readBytes(handle, tailStart, TAIL_BYTES);
    return describe(file, head, tail, { size: info.size, modified: info.mtimeMs, whole: tailStart === 0 });
  } catch {
    return undefined;
  } finally {
    await handle.close();
  }
}

function describe(
  file: string,
  head: Buffer,
  tail: Buffer,
  facts: { size: number; modified: number; whole: boolean },
): SessionInfo | undefined {
  const first = values(head);
  const header = headerOf(first);
  if (header === undefined) return undefined;
  const last = facts.whole ? values(tail) : [...first, ...values(tail)];
  if (facts.whole && !last.some((value) => value["type"] === "message" || value["type"] === "custom_message")) return undefined;
  const named = last.findLast((value) => value["type"] === "session_info" || value["type"] === "title_change");
  const slot = TitleSlot.safeParse(first[0]);
  const name = named?.["name"] ?? named?.["title"] ?? (slot.data?.title || header.title);
  const created = Date.parse(header.timestamp);
  return {
    file,
    id: header.id,
    cwd: header.cwd,
    name: typeof name === "string" && name !== "" ? name : undefined,
    created: Number.isFinite(created) ? created : 0,
    modified: facts.modified,
    size: facts.size,
    parentSession: header.parentSession,
    firstMessage: preview(first) ?? (facts.whole ? preview(last) : undefined) ?? cutPreview(head),
  };
}

/** The header among the first lines, where a title line may stand before it. */
function headerOf(first: readonly Record<string, unknown>[]): SessionHeader | undefined {
  return SessionHeader.safeParse(first[TitleSlot.safeParse(first[0]).success ? 1 : 0]).data;
}

/** The objects of the complete lines in a piece of a file; a piece that starts inside a line loses that one. */
function values(bytes: Buffer): Record<string, unknown>[] {
  const found: Record<string, unknown>[] = [];
  for (let from = 0; from < bytes.length; ) {
    const lf = bytes.indexOf(10, from);
    const end = lf < 0 ? bytes.length : lf;
    for (const value of parseLine(bytes.subarray(from, end)).values) if (isRecord(value)) found.push(value);
    from = end + 1;
  }
  return found;
}

function preview(entries: readonly Record<string, unknown>[]): string | undefined {
  for (const entry of entries) {
    const message = entry["message"];
    if (!isRecord(message) || message["role"] !== "user") continue;
    const content = message["content"];
    const block: unknown = Array.isArray(content)
      ? content.find((part) => isRecord(part) && typeof part["text"] === "string")
      : undefined;
    const text = typeof content === "string" ? content : isRecord(block) ? block["text"] : undefined;
    if (typeof text === "string") return shortened(text);
  }
  return undefined;
}

function shortened(text: string): string {
  return text.replace(/\s+/g, " ").trim().slice(0, PREVIEW_LENGTH);
}

/** The message of a user is often longer than the head: its line is cut, and its beginning can be told all the same. */
const CUT_MESSAGE =
  /^\{"type":"message",(?:"[a-zA-Z]+":(?:"[^"\\]*"|null),)*"message":\{"role":"user","content":(?:\[\{"type":"text","text":)?"((?:[^"\\]|\\.)*)/s;

function cutPreview(head: Buffer): string | undefined {
  const line = head.subarray(head.lastIndexOf(10) + 1).toString("utf8");
  const escaped = CUT_MESSAGE.exec(line)?.[1]?.replace(/\\u[0-9a-fA-F]{0,3}$/, "");
  if (escaped === undefined) return undefined;
  try {
    return shortened(String(JSON.parse(`"${escaped}"`)));
  } catch {
    return undefined;
  }
}

async function readBytes(handle: FileHandle, position: number, length: number): Promise<Buffer> {
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, position);
  return buffer.subarray(0, bytesRead);
}

interface Found {
  readonly file: string;
  /** Lower case. */
  readonly name: string;
  readonly id: string;
}

/**
 * Session files by name, the newest first: names begin with the time. Of a working directory those in its folder, whichever
 * program named it, and those in no folder, which are some directory's.
 */
async function sessionFiles(sessionsDir: string, cwd: string | undefined): Promise<Found[]> {
  const folders = cwd === undefined ? await names(sessionsDir) : bucketsOf(cwd);
  const found: Found[] = [];
  for (const folder of [".", ...folders]) {
    for (const entry of await names(join(sessionsDir, folder))) {
      if (!entry.endsWith(".jsonl")) continue;
      const name = basename(entry, ".jsonl").toLowerCase();
      found.push({ file: join(sessionsDir, folder, entry), name, id: name.slice(name.lastIndexOf("_") + 1) });
    }
  }
  return found.sort((a, b) => (a.name < b.name ? 1 : -1));
}

async function names(dir: string): Promise<string[]> {
  try {
    return await readdir(dir);
  } catch {
    return [];
  }
}

/** A file that vanished meanwhile is not free either. */
function isFree(file: string): boolean {
  try {
    return lockOwner(file) === undefined;
  } catch {
    return false;
  }
}

function sameCwd(a: string, b: string): boolean {
  return a === b || realCwd(a) === realCwd(b);
}
