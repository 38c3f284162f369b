// Replacing a file as a whole: the new content stands in a hidden file beside it until it is complete, then takes its name.
// A reader, or a crash, sees the old or the new content and nothing between.
import { randomBytes } from "node:crypto";
import { constants, type Stats } from "node:fs";
import { access, mkdir, open, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ToolError } from "mortise/extension";
import { specialKind, toolError } from "./_open.ts";
import { isMissing } from "./_path.ts";
import { versionOf } from "./_seen.ts";

/** The file is not the one that was read; nothing was written. */
export class ChangedError extends Error {}

export interface Replaced {
  existed: boolean;
  madeExecutable: boolean;
}

/**
 * Writes `content` to a real path. An existing file keeps its mode; a new one that starts with `#!` becomes executable.
 * Directories that may not be written and files that are mounted one by one are written in place.
 *
 * @throws {ToolError} when the path cannot be written
 * @throws {ChangedError} when `expected` is given and the file has another version at the last moment
 */
export async function replaceFile(
  real: string,
  content: Buffer,
  options: { shown: string; expected?: string | undefined; signal: AbortSignal },
): Promise<Replaced> {
  const { shown, expected, signal } = options;
  const old = await existing(real, shown);
  try {
    if (old === undefined) await mkdir(dirname(real), { recursive: true });
    const mode = old === undefined ? undefined : old.mode & 0o7777;
    const madeExecutable = old === undefined && content.subarray(0, 2).toString() === "#!";
    const temporary = join(dirname(real), `.${randomBytes(8).toString("hex")}.mortise-tmp`);
    try {
      await writeTemporary(temporary, content, { mode, madeExecutable, old });
      signal.throwIfAborted();
      if (expected !== undefined && (await versionOf(real)) !== expected) throw new ChangedError(shown);
      await rename(temporary, real);
    } catch (error) {
      await rm(temporary, { force: true });
      if (old === undefined || !needsInPlace(error)) throw error;
      await writeFile(real, content);
    }
    return { existed: old !== undefined, madeExecutable };
  } catch (error) {
    if (error instanceof ChangedError || signal.aborted) throw error;
    throw toolError(`Cannot write ${shown}`, error);
  }
}

async function existing(real: string, shown: string): Promise<Stats | undefined> {
  try {
    const stats = await stat(real);
    if (stats.isDirectory()) throw new ToolError(`Cannot write ${shown}: it is a directory`);
    const kind = specialKind(stats);
    if (kind !== undefined) throw new ToolError(`Cannot write ${shown}: it is a ${kind}, not a file`);
    // A rename would replace a file that is write-protected.
    await access(real, constants.W_OK);
    return stats;
  } catch (error) {
    if (ToolError.is(error)) throw error;
    if (isMissing(error)) return undefined;
    throw toolError(`Cannot write ${shown}`, error);
  }
}

async function writeTemporary(
  path: string,
  content: Buffer,
  file: { mode: number | undefined; madeExecutable: boolean; old: Stats | undefined },
): Promise<void> {
  const handle = await open(path, "wx", file.mode ?? 0o666);
  try {
    await handle.writeFile(content);
    if (file.old !== undefined) {
      const { uid, gid } = await handle.stat();
      if (uid !== file.old.uid || gid !== file.old.gid) await handle.chown(file.old.uid, file.old.gid).catch(() => {});
    }
    // After chown, which clears the set-id bits; `open` has applied the umask.
    if (file.mode !== undefined) await handle.chmod(file.mode);
    else if (file.madeExecutable) {
      const { mode } = await handle.stat();
      await handle.chmod((mode & 0o777) | ((mode & 0o444) >> 2));
    }
  } finally {
    await handle.close();
  }
}

function needsInPlace(error: unknown): boolean {
  return error instanceof Error && "code" in error && ["EACCES", "EPERM", "EBUSY", "EXDEV"].includes(String(error.code));
}
