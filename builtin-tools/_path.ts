// How every tool reads a path argument.
import { readlink, realpath } from "node:fs/promises";
import { homedir } from "node:os";
import { basename, dirname, join, relative, resolve } from "node:path";
import { ToolError } from "mortise/extension";

/**
 * The absolute path of an argument: a leading `@` is dropped, `~` is the home directory, relative ones start at `cwd`.
 *
 * @throws {ToolError} when it is empty or holds a NUL character
 */
export function resolvePath(cwd: string, argument: string): string {
  if (argument.includes("\0")) throw new ToolError("Cannot use the path: it holds a NUL character");
  let path = argument.trim() === "" ? "" : argument;
  if (path.startsWith("@")) path = path.slice(1);
  if (path.startsWith("file://")) path = decodeURIComponent(new URL(path).pathname);
  if (path === "") throw new ToolError("Cannot use the path: it is empty; give a file or directory");
  if (path === "~" || path.startsWith("~/")) path = join(homedir(), path.slice(1));
  return resolve(cwd, path);
}

/** The real path of a file that may not exist yet: all symbolic links are followed, one at the end that leads nowhere as well. */
export async function realPath(path: string, depth = 0): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    // 40: the limit of Linux for links in a row.
    if (!isMissing(error) || dirname(path) === path || depth > 40) throw error;
  }
  const parent = await realPath(dirname(path), depth + 1);
  const target = await readlink(join(parent, basename(path))).catch(() => undefined);
  return target === undefined ? join(parent, basename(path)) : realPath(resolve(parent, target), depth + 1);
}

/** A path as shown: relative to `cwd` when it lies under it. */
export function shownPath(cwd: string, path: string): string {
  const shown = relative(cwd, path);
  return shown === "" ? "." : shown.startsWith("..") ? path : shown;
}

/** True for errors that say that a file or a folder on the way to it does not exist. */
export function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR");
}
