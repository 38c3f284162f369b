// Where an export may go (DESIGN §3 "host-given paths"): the host names the place, but no link is followed and nothing is
// overwritten that is not an earlier export.

import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, link, lstat, open, rename, rm } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { CommandError } from "mortise/extension";
import type { Mask } from "./_mask.ts";

/** Stands at the beginning of every export; only a file that has it is overwritten. */
export const MARKER = "<!-- mortise session export -->";
export const HEAD = `<!DOCTYPE html>\n${MARKER}\n`;
const NAME_CHARS = 120;
const WRITE_CHARS = 1 << 20;

/** `mortise-session-<base name of the session file>.html`, without anything that could lead elsewhere. */
export function defaultName(sessionFile: string, mask: Mask): string {
  const base = mask(basename(sessionFile).replace(/\.jsonl$/i, ""))
    .replace(/[^A-Za-z0-9._-]+/g, "-")
    .replace(/^[.-]+/, "")
    .slice(0, NAME_CHARS);
  return `mortise-session-${base || "session"}.html`;
}

/** @throws {CommandError} naming what stands in the way. */
export function targetPath(outputPath: string, cwd: string): string {
  if (outputPath.includes("\0")) throw new CommandError("Output path must not hold a NUL character", "invalid_params");
  return resolve(cwd, outputPath);
}

/** Refuses a place before the work of rendering. @throws {CommandError} */
export async function checkTarget(file: string): Promise<void> {
  await mayReplace(file);
  const folder = await lstat(join(dirname(file), ".")).catch(() => undefined);
  if (folder?.isDirectory() !== true)
    throw new CommandError(`Cannot export to "${file}": its folder does not exist`, "not_found");
}

/** Writes the whole file or nothing, for the user alone. @throws {CommandError} */
export async function writeExport(file: string, chunks: Iterable<string>): Promise<void> {
  const temporary = join(dirname(file), `.${basename(file).slice(0, 60)}.${randomUUID()}.tmp`);
  try {
    const handle = await open(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, 0o600);
    try {
      for (const piece of joined(chunks)) await handle.appendFile(piece);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await put(temporary, file);
  } catch (error) {
    if (CommandError.is(error)) throw error;
    throw new CommandError(`Cannot export to "${file}": ${codeOf(error)}`, undefined, { cause: error });
  } finally {
    await rm(temporary, { force: true });
  }
}

/** Few large writes instead of many small ones. */
function* joined(chunks: Iterable<string>): Generator<string> {
  let parts: string[] = [];
  let length = 0;
  for (const chunk of chunks) {
    parts.push(chunk);
    length += chunk.length;
    if (length < WRITE_CHARS) continue;
    yield parts.join("");
    parts = [];
    length = 0;
  }
  yield parts.join("");
}

async function put(temporary: string, file: string): Promise<void> {
  // Looked at again: it may have come meanwhile. A link that comes after this is replaced, never followed.
  if (await mayReplace(file)) return rename(temporary, file);
  try {
    await link(temporary, file);
  } catch (error) {
    if (codeOf(error) === "EEXIST")
      throw new CommandError(`Cannot export to "${file}": the file exists and is not an earlier export`);
    // A file system without hard links.
    await rename(temporary, file);
  }
}

/** True for an earlier export, false when nothing is there. @throws {CommandError} for anything else. */
async function mayReplace(file: string): Promise<boolean> {
  const refuse = (why: string) => new CommandError(`Cannot export to "${file}": ${why}`, "invalid_params");
  let handle: FileHandle | undefined;
  try {
    const stat = await lstat(file);
    if (stat.isSymbolicLink()) throw refuse("it is a symbolic link");
    if (stat.isDirectory()) throw refuse("it is a folder");
    if (!stat.isFile()) throw refuse("it is not a regular file");
    handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(HEAD.length), 0, HEAD.length, 0);
    if (buffer.subarray(0, bytesRead).toString("latin1") !== HEAD) throw refuse("the file exists and is not an earlier export");
    return true;
  } catch (error) {
    if (CommandError.is(error)) throw error;
    if (codeOf(error) === "ENOENT") return false;
    throw refuse(codeOf(error));
  } finally {
    await handle?.close();
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "it cannot be written";
}
