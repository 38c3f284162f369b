// Reads a session file into a tree without ever changing it. Damage costs the damaged lines and nothing else; a file without
// a session header is refused before any of its content is looked at.
import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { isDeepStrictEqual } from "node:util";
import { errorMessage } from "../kernel/errors.ts";
import { Blobs, mayHoldBlobs } from "./blobs.ts";
import { messageOf } from "./convert.ts";
import { isTooDeep } from "./depth.ts";
import { isEntry, isRecord, SESSION_VERSION, SessionHeader, TitleSlot } from "./entry.ts";
import { SessionFormatError } from "./errors.ts";
import { type RawLine, readLines } from "./lines.ts";
import { Migration } from "./migrate.ts";
import { parseLine } from "./salvage.ts";
import { estimateTokens } from "./tokens.ts";
import { EntryTree } from "./tree.ts";

/** A header has an id, a path and a title; a longer first line is something else. */
const MAX_HEADER_BYTES = 1024 * 1024;
const MAX_LISTED = 100;

export type DamageReason =
  | "unreadable"
  | "partly unreadable"
  | "torn end"
  | "too long"
  | "not an entry"
  | "repeated id"
  | "lost parent";

/** What was found wrong while reading. Nothing was changed in the file. */
export interface ReadReport {
  /** The first 100 places, in file order. */
  readonly damage: readonly { readonly offset: number; readonly length: number; readonly reason: DamageReason }[];
  /** Lines of which something was lost. */
  readonly lostLines: number;
  /** Version the file has on disk; the log in memory is always version 3. */
  readonly version: number;
}

export interface ReadResult {
  readonly header: SessionHeader;
  readonly titleSlot: TitleSlot | undefined;
  readonly tree: EntryTree;
  readonly report: ReadReport;
  readonly size: number;
  /** The file does not end with LF: a write must start a new line first. */
  readonly tornEnd: boolean;
}

/** Opens a session file for reading; regular files only. @throws {SessionFormatError} */
export async function openForReading(file: string): Promise<FileHandle> {
  if (file.includes("\0")) throw new SessionFormatError(file.replaceAll("\0", "\\0"), "the path holds a NUL character");
  let handle: FileHandle;
  try {
    // Non-blocking, because opening a named pipe would wait for a writer for ever.
    handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    if (isRecord(error) && error["code"] === "ENOENT") throw new SessionFormatError(file, "the file does not exist", "not_found");
    throw new SessionFormatError(file, errorMessage(error));
  }
  try {
    if (!(await handle.stat()).isFile()) throw new SessionFormatError(file, "it is not a regular file");
    return handle;
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** The header of a session file, and nothing else of it. @throws {SessionFormatError} */
export async function readHeader(
  handle: FileHandle,
  file: string,
): Promise<{ header: SessionHeader; titleSlot: TitleSlot | undefined }> {
  const reader = new Reader(file);
  let offset = 0;
  await readLines(
    handle,
    (line) => {
      offset = line.offset + line.length;
      reader.line(line);
      return reader.header === undefined && offset < MAX_HEADER_BYTES;
    },
    { end: MAX_HEADER_BYTES, maxLineBytes: MAX_HEADER_BYTES },
  );
  return { header: reader.requireHeader(offset === 0), titleSlot: reader.titleSlot };
}

/** Reads the whole file. @throws {SessionFormatError} when it is no session file. */
export async function readSession(handle: FileHandle, file: string): Promise<ReadResult> {
  const reader = new Reader(file);
  // The file may grow while it is read by someone who holds no lock; the size at the start is the limit.
  const { size } = await handle.stat();
  await readLines(handle, (line) => reader.line(line), { end: size });
  return {
    header: reader.requireHeader(size === 0),
    titleSlot: reader.titleSlot,
    tree: reader.tree,
    report: reader.report(),
    size,
    tornEnd: reader.tornEnd,
  };
}

class Reader {
  readonly tree = new EntryTree();
  header: SessionHeader | undefined;
  titleSlot: TitleSlot | undefined;
  tornEnd = false;
  readonly #file: string;
  readonly #damage: { offset: number; length: number; reason: DamageReason }[] = [];
  #lost = 0;
  #version = SESSION_VERSION;
  #migration = new Migration(SESSION_VERSION);
  #blobs: Blobs | undefined;

  constructor(file: string) {
    this.#file = file;
  }

  report(): ReadReport {
    return { damage: this.#damage, lostLines: this.#lost, version: this.#version };
  }

  requireHeader(empty: boolean): SessionHeader {
    if (this.header !== undefined) return this.header;
    throw new SessionFormatError(this.#file, empty ? "the file is empty" : "the session header is missing or malformed");
  }

  line(line: RawLine): boolean {
    this.tornEnd = !line.complete;
    if (line.bytes === undefined) {
      this.#lose(line, "too long");
      return true;
    }
    const text = line.bytes.toString("utf8");
    const { values, damaged } = parseLine(line.bytes, text);
    if (this.header === undefined) {
      // Bytes before a header mean that this is no session, or one whose first lines cannot be trusted.
      if (damaged && values.length === 0) this.requireHeader(false);
    } else if (damaged) {
      const reason = values.length > 0 ? "partly unreadable" : line.complete ? "unreadable" : "torn end";
      this.#lose(line, reason);
      if (values.length === 0) this.#migration.skip();
    }
    // Once for the line: it may hold thousands of entries that were glued together.
    const refersToBlobs = values.length > 0 && mayHoldBlobs(text);
    for (const value of values) this.#value(value, line, refersToBlobs);
    return true;
  }

  #value(value: unknown, line: RawLine, refersToBlobs: boolean): void {
    if (this.header === undefined) {
      this.#head(value);
      return;
    }
    const entry = this.#migration.apply(value);
    if (!isEntry(entry) || isTooDeep(entry, line.length)) {
      this.#lose(line, "not an entry");
      return;
    }
    if (refersToBlobs) {
      this.#blobs ??= new Blobs(this.#file);
      this.#blobs.resolve(entry);
    }
    const earlier = this.tree.get(entry.id);
    if (earlier !== undefined) {
      this.#note(line, "repeated id");
      if (isDeepStrictEqual(earlier, entry)) return;
    }
    const added = this.tree.add(entry);
    if (added.bridged) this.#note(line, "lost parent");
    // Converted and measured here, in the slices of reading, so that building the context later takes no long step.
    const message = messageOf(added.entry);
    if (message !== undefined) estimateTokens(message);
  }

  #head(value: unknown): void {
    const slot = this.titleSlot === undefined ? TitleSlot.safeParse(value) : undefined;
    if (slot?.success) {
      this.titleSlot = slot.data;
      return;
    }
    const header = SessionHeader.safeParse(value);
    if (!header.success) return void this.requireHeader(false);
    this.#version = header.data.version ?? 1;
    if (this.#version > SESSION_VERSION) {
      throw new SessionFormatError(
        this.#file,
        `it has format version ${this.#version}, and ${SESSION_VERSION} is the newest one known`,
      );
    }
    this.header = { ...header.data, version: SESSION_VERSION };
    this.#migration = new Migration(this.#version);
  }

  #lose(line: RawLine, reason: DamageReason): void {
    this.#lost++;
    this.#note(line, reason);
  }

  #note(line: RawLine, reason: DamageReason): void {
    if (this.#damage.length < MAX_LISTED) this.#damage.push({ offset: line.offset, length: line.length, reason });
  }
}
