// Folders in which the user and the project keep files that are contributions: rules/, skills/, prompts/, commands/, agents/.
import { type Dirent, existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "../kernel/context.ts";
import { errorMessage } from "../kernel/errors.ts";
import { watchPaths } from "./watch.ts";

export interface ContentFolder {
  readonly path: string;
  readonly origin: "user" | "project";
}

/** The folders of a name. The project's comes first: it wins what both have. */
export function contentFolders({ home, cwd }: { home: string; cwd: string }, name: string): ContentFolder[] {
  return [
    { path: join(cwd, ".mortise", name), origin: "project" },
    { path: join(home, name), origin: "user" },
  ];
}

/** Paths of the entries of a folder that are not hidden, sorted; none when there is no folder. Failures are told through `warn`. */
export async function listFolder(
  path: string,
  accepts: (entry: Dirent) => boolean,
  warn: (message: string) => void,
): Promise<string[]> {
  // Most of these folders are never made: spares the round trip through a thread.
  if (!existsSync(path)) return [];
  try {
    const entries = await readdir(path, { withFileTypes: true });
    return entries
      .filter((entry) => !entry.name.startsWith(".") && accepts(entry))
      .map((entry) => join(path, entry.name))
      .sort();
  } catch (error) {
    if (existsSync(path)) warn(`Cannot read folder "${path}": ${errorMessage(error)}`);
    return [];
  }
}

/** Logs each message once: files are read again and again, and what is wrong with one is told when it is first seen. */
export function warnOnce(log: Logger): (message: string) => void {
  const told = new Set<string>();
  return (message) => {
    if (told.has(message)) return;
    told.add(message);
    log.warn(message);
  };
}

export interface FollowOptions {
  /** What to watch, asked again after each scan. */
  paths(): readonly string[];
  /** Never runs twice at a time. */
  scan(): Promise<void>;
  /** Told when a scan after the first one fails. */
  onError(error: unknown): void;
}

/** Scans now and after every change. `first` settles with the first scan; nothing runs after `close`. */
export function followFolders({ paths, scan, onError }: FollowOptions): { readonly first: Promise<void>; close(): void } {
  let closed = false;
  let watched = paths();
  const rescan = async () => {
    if (closed) return;
    await scan();
    const wanted = paths();
    if (wanted.join("\0") === watched.join("\0")) return;
    watched = wanted;
    watch.update(wanted);
  };
  let scanning = Promise.resolve();
  // Watched from before the first scan on, so that no change falls between the two.
  const watch = watchPaths(watched, () => {
    scanning = scanning.then(rescan).catch(onError);
  });
  const first = rescan();
  scanning = first.catch(() => {});
  return {
    first,
    close() {
      closed = true;
      watch.close();
    },
  };
}
