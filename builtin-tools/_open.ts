// Opening what a path names: regular files only, so that no FIFO or device can hold a call.
import { constants, type Stats } from "node:fs";
import { type FileHandle, open, readdir, readlink, stat } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { ToolError } from "mortise/extension";
import { isMissing } from "./_path.ts";

/** @throws {ToolError} when nothing is there (names similar files), or when it may not be looked at */
export async function statPath(path: string, shown: string): Promise<Stats> {
  try {
    return await stat(path);
  } catch (error) {
    if (isMissing(error)) throw new ToolError(await missing(path, shown), { cause: error });
    throw toolError(`Cannot read ${shown}`, error);
  }
}

/** Refuses what is neither file nor directory, before it is opened. */
export function assertReadable(stats: Stats, shown: string): void {
  const kind = specialKind(stats);
  if (kind !== undefined) throw new ToolError(`Cannot read ${shown}: it is a ${kind}, not a file`);
}

export function specialKind(stats: Stats): string | undefined {
  if (stats.isFIFO()) return "named pipe";
  if (stats.isSocket()) return "socket";
  if (stats.isCharacterDevice()) return "character device";
  if (stats.isBlockDevice()) return "block device";
  return undefined;
}

/** Opens a regular file; what is swapped in between is refused as well. */
export async function openFile(path: string, shown: string): Promise<FileHandle> {
  let handle: FileHandle;
  try {
    // O_NONBLOCK: opening a FIFO would wait for a writer.
    handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    throw toolError(`Cannot read ${shown}`, error);
  }
  const stats = await handle.stat();
  if (stats.isFile()) return handle;
  await handle.close();
  throw new ToolError(`Cannot read ${shown}: it is not a regular file`);
}

/** A ToolError with the reason of a system error in words. */
export function toolError(action: string, error: unknown): ToolError {
  const code = error instanceof Error && "code" in error ? String(error.code) : undefined;
  const reason = (code && reasons[code]) ?? (error instanceof Error ? error.message : String(error));
  return new ToolError(`${action}: ${reason}`, { cause: error });
}

const reasons: Record<string, string> = {
  EACCES: "permission denied",
  EPERM: "operation not permitted",
  EISDIR: "it is a directory",
  EEXIST: "a part of the path is a file",
  EIO: "the system reports an input/output error",
  ENOTDIR: "a part of the path is not a directory",
  ENOENT: "no such file or directory",
  ELOOP: "too many symbolic links",
  ENAMETOOLONG: "the name is too long",
  ENOSPC: "no space left on the device",
  EROFS: "the file system is read-only",
  EMFILE: "too many open files",
};

async function missing(path: string, shown: string): Promise<string> {
  const target = await readlink(path).catch(() => undefined);
  if (target !== undefined) return `No such file or directory: ${shown} is a symbolic link to ${target}, which does not exist`;
  return `No such file or directory: ${shown}${await similar(path)}`;
}

async function similar(path: string): Promise<string> {
  const wanted = basename(path).toLowerCase().trim();
  const stem = wanted.replace(/\.[^.]*$/, "");
  try {
    const names = await readdir(dirname(path));
    const close = names.filter((name) => {
      const lower = name.toLowerCase();
      return lower === wanted || (stem.length > 2 && (lower.startsWith(stem) || lower.includes(wanted)));
    });
    return close.length > 0 ? `; similar names there: ${close.slice(0, 5).join(", ")}` : "";
  } catch (error) {
    const isFile = error instanceof Error && "code" in error && error.code === "ENOTDIR";
    return isFile ? "; a part of its path is a file" : "; its directory does not exist either";
  }
}
