// Reading and writing one configuration file. A file that cannot be understood is an error with the file's name and one line
// of reason, never its content: values may be secrets. Invariant: a broken file is never overwritten.
import { isUtf8 } from "node:buffer";
import { randomBytes } from "node:crypto";
import { chmod, mkdir, open, readFile, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { CommandError, errorMessage, SettingsFileError } from "mortise/extension";
import type { Document } from "yaml";
import { type Data, isMapping, readPath } from "./_data.ts";

/** Nobody writes so many settings by hand, and a parser holds everything else up while it reads. */
const MAX_BYTES = 200_000;

/** The text of a file; undefined when it does not exist. @throws {SettingsFileError} when it cannot be read or is too large. */
export async function readText(file: string): Promise<string | undefined> {
  return (await readBytes(file))?.toString("utf8");
}

async function readBytes(file: string): Promise<Buffer | undefined> {
  let bytes: Buffer;
  try {
    bytes = await readFile(file);
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw new SettingsFileError(file, `Cannot read settings file "${file}": ${errorMessage(error)}`, { cause: error });
  }
  if (bytes.length <= MAX_BYTES) return bytes;
  const sizes = `it has ${bytes.length} bytes, and the limit is ${MAX_BYTES}`;
  throw new SettingsFileError(file, `Cannot use settings file "${file}": ${sizes}`);
}

/** True for what can be read once only, such as the shell's `<(command)`. */
export async function isStream(file: string): Promise<boolean> {
  try {
    const found = await stat(file);
    return found.isFIFO() || found.isCharacterDevice() || found.isSocket();
  } catch {
    return false;
  }
}

/** @throws {SettingsFileError} when the text is not YAML or its top level is not a mapping. */
export async function parseText(file: string, text: string): Promise<Data> {
  return dataOf(file, await parse(file, text));
}

async function parse(file: string, text: string): Promise<Document> {
  const { parseDocument } = await import("yaml");
  // Not silent: that would pass over a second document, and the next write would drop it. The parser's own check of keys takes
  // minutes for a large file.
  const document = parseDocument(text, { merge: true, logLevel: "error", uniqueKeys: false });
  const [first] = document.errors;
  if (first !== undefined) {
    // The parser's text goes on with the offending lines; only its first line is ours to repeat.
    const reason =
      first.code === "MULTIPLE_DOCS"
        ? `it holds more than one document, the second from line ${first.linePos?.[0].line ?? 1} on`
        : first.message.split("\n", 1)[0]?.replace(/:$/, "");
    throw new SettingsFileError(file, `Cannot use settings file "${file}": it is not valid YAML: ${reason}`);
  }
  const twice = await keyTwice(document);
  if (twice !== undefined) {
    const line = text.slice(0, twice.at).split("\n").length;
    throw new SettingsFileError(
      file,
      `Cannot use settings file "${file}": "${twice.key}" stands there twice, again in line ${line}`,
    );
  }
  return document;
}

/** The first key that a mapping has a second time, and where. */
async function keyTwice(document: Document): Promise<{ key: string; at: number } | undefined> {
  const { isScalar, visit } = await import("yaml");
  let found: { key: string; at: number } | undefined;
  visit(document, {
    Map(_key, { items }) {
      const seen = new Set<unknown>();
      for (const { key } of items) {
        if (!isScalar(key) || key.value === "<<") continue;
        if (seen.has(key.value)) found ??= { key: String(key.value).slice(0, 100), at: key.range?.[0] ?? 0 };
        seen.add(key.value);
      }
      return found === undefined ? undefined : visit.BREAK;
    },
  });
  return found;
}

function dataOf(file: string, document: Document): Data {
  let data: unknown;
  try {
    data = document.toJS({ maxAliasCount: 100 });
  } catch (error) {
    throw new SettingsFileError(file, `Cannot use settings file "${file}": ${errorMessage(error)}`, { cause: error });
  }
  if (isCircular(data)) throw new SettingsFileError(file, `Cannot use settings file "${file}": an alias contains itself`);
  if (data === null || data === undefined) return {};
  if (isMapping(data)) return data;
  const found = Array.isArray(data) ? "a list" : `a ${typeof data}`;
  throw new SettingsFileError(file, `Cannot use settings file "${file}": expected settings as "name: value", found ${found}`);
}

/**
 * Sets (or with undefined removes) one path, keeping comments and everything else, and gives the text that was written.
 * The file is read again under a lock, so an edit made meanwhile survives.
 *
 * @throws {CommandError} when the file is broken or the path runs through a value that is no mapping; nothing is written then.
 */
export async function writePath(file: string, path: string, value: unknown, mode: number | undefined): Promise<string> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  // A linked configuration file stays a link.
  const target = await realpath(file).catch(() => file);
  const release = await lock(`${target}.lock`);
  try {
    const bytes = (await readBytes(target)) ?? Buffer.alloc(0);
    // What is no text of ours would come out as replacement characters.
    if (!isUtf8(bytes)) throw new CommandError(`Cannot set "${path}": "${file}" is not UTF-8 text. Correct the file first`);
    const text = bytes.toString("utf8");
    let document: Document;
    try {
      document = await parse(file, text);
      dataOf(file, document);
    } catch (error) {
      throw new CommandError(`Cannot set "${path}": ${errorMessage(error)}. Correct the file first`, undefined, { cause: error });
    }
    await keepNumbers(document);
    await change(document, path, value);
    const written = inFormOf(text, document.toString({ lineWidth: 0, flowCollectionPadding: /\{ /.test(text) }));
    await replaceFile(target, written, mode ?? (await modeOf(target)));
    return written;
  } finally {
    await release();
  }
}

/** Whole numbers beyond what a double holds are written back as they are. */
async function keepNumbers(document: Document): Promise<void> {
  const { visit } = await import("yaml");
  visit(document, {
    Scalar(_key, node) {
      const { value, source } = node;
      if (typeof value !== "number" || Number.isSafeInteger(value) || source === undefined || !/^[-+]?\d+$/.test(source)) return;
      node.value = BigInt(source.replace("+", ""));
    },
  });
}

/** Line ends and byte order mark as the file had them. */
function inFormOf(before: string, text: string): string {
  const lines = /\r\n/.test(before) && !/(?<!\r)\n/.test(before) ? text.replaceAll("\n", "\r\n") : text;
  return before.startsWith("\uFEFF") && !lines.startsWith("\uFEFF") ? `\uFEFF${lines}` : lines;
}

/** True when a value contains itself. */
function isCircular(value: unknown, around = new Set<unknown>()): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (around.has(value)) return true;
  around.add(value);
  const circular = Object.values(value).some((inner) => isCircular(inner, around));
  around.delete(value);
  return circular;
}

async function change(document: Document, path: string, value: unknown): Promise<void> {
  const { isMap } = await import("yaml");
  const places = placesOf(document.toJS() ?? {}, path);
  for (const place of places.slice(0, -1)) document.deleteIn(place);
  const last = places.at(-1);
  if (value === undefined) {
    if (last !== undefined) document.deleteIn(last);
    return;
  }
  if (last !== undefined) {
    // A plain value goes into the node that is there, which keeps its comment.
    document.setIn(last, typeof value === "object" ? document.createNode(value) : value);
    return;
  }
  const segments = path.split(".");
  for (let length = 1; length < segments.length; length++) {
    const parent = segments.slice(0, length);
    const node: unknown = document.getIn(parent, true);
    if (node === undefined || isMap(node)) continue;
    if (readPath(document.toJS() ?? {}, parent.join(".")) !== undefined) {
      throw new CommandError(`Cannot set "${path}": "${parent.join(".")}" already has a value that is no mapping`);
    }
    document.deleteIn(parent);
  }
  if (document.contents === null) document.contents = document.createNode({});
  document.setIn(segments, document.createNode(value));
}

/** Key sequences under which a path stands in the file, in file order. */
function placesOf(data: unknown, path: string): string[][] {
  if (!isMapping(data)) return [];
  const places: string[][] = [];
  for (const [key, value] of Object.entries(data)) {
    if (key === path) places.push([key]);
    else if (path.startsWith(`${key}.`)) {
      for (const inner of placesOf(value, path.slice(key.length + 1))) places.push([key, ...inner]);
    }
  }
  return places;
}

async function modeOf(file: string): Promise<number> {
  try {
    return (await stat(file)).mode & 0o777;
  } catch {
    return 0o600;
  }
}

/** The old or the new content, never a part of it. */
async function replaceFile(file: string, text: string, mode: number): Promise<void> {
  const temporary = `${file}.${process.pid}.${randomBytes(4).toString("hex")}.tmp`;
  try {
    await writeFile(temporary, text, { mode, flag: "wx" });
    await chmod(temporary, mode);
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

/** How long a lock of a process that we cannot see may stand. */
const STALE_MS = 10_000;

/** An exclusive lock file with the owner's pid; one left by a dead process is taken over. */
async function lock(path: string): Promise<() => Promise<void>> {
  const deadline = Date.now() + 2 * STALE_MS;
  for (;;) {
    try {
      const handle = await open(path, "wx", 0o600);
      await handle.writeFile(`${process.pid}\n`);
      await handle.close();
      return () => rm(path, { force: true });
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
    }
    if (await isStale(path)) await rm(path, { force: true });
    else if (Date.now() > deadline)
      throw new CommandError(`Cannot change settings: "${path}" is held by another process`, "locked");
    else await delay(20);
  }
}

async function isStale(path: string): Promise<boolean> {
  try {
    const [text, { mtimeMs }] = await Promise.all([readFile(path, "utf8"), stat(path)]);
    const pid = Number.parseInt(text, 10);
    if (Date.now() - mtimeMs > STALE_MS) return true;
    if (!Number.isInteger(pid) || pid === process.pid) return false;
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "ESRCH";
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR");
}
