// Watches directories for a set of paths. Events are hints: they say where to look, and what is there decides. A directory that is
// swapped by rename is watched anew, because its watch stays with the old inode.
import { type FSWatcher, statSync, watch } from "node:fs";
import { dirname, join, sep } from "node:path";
import type { Logger } from "../kernel/context.ts";
import { errorMessage } from "../kernel/errors.ts";

interface Watched {
  /** Undefined when the system refused: no handles left, or no right to look. */
  readonly watcher: FSWatcher | undefined;
  /** Which directory it was when the watch was set. */
  readonly identity: string;
}

export interface PathWatcherOptions {
  /** Called with the path something happened at; a directory when no more is known. */
  onEvent(path: string): void;
  log: Logger;
}

export class PathWatcher {
  readonly #options: PathWatcherOptions;
  readonly #directories = new Map<string, Watched>();
  #wanted: ReadonlySet<string> = new Set();
  #stopped = false;

  constructor(options: PathWatcherOptions) {
    this.#options = options;
  }

  /** Directories watched now; one handle each. */
  get size(): number {
    return this.#directories.size;
  }

  /**
   * Watches these paths, present or not, and nothing else: changes are seen from now on. Directories that were not watched before are
   * reported once, because something may have changed in between.
   */
  watch(paths: Iterable<string>): void {
    this.#wanted = new Set(paths);
    this.#sync();
  }

  stop(): void {
    this.#stopped = true;
    for (const { watcher } of this.#directories.values()) watcher?.close();
    this.#directories.clear();
  }

  /** Brings the set of watches in line with what is wanted and what is on disk. */
  #sync(): void {
    if (this.#stopped) return;
    const needed = new Map<string, string>();
    for (const path of this.#wanted) addDirectories(path, needed);
    for (const [directory, watched] of this.#directories) {
      if (needed.get(directory) === watched.identity) continue;
      this.#directories.delete(directory);
      watched.watcher?.close();
    }
    for (const [directory, identity] of needed) {
      if (!this.#directories.has(directory)) this.#open(directory, identity);
    }
  }

  #open(directory: string, identity: string): void {
    const watcher = this.#handle(directory);
    this.#directories.set(directory, { watcher, identity });
    // What is there by now was there before the watch or comes through it.
    setImmediate(() => this.#report(directory));
  }

  #handle(directory: string): FSWatcher | undefined {
    const failed = (error: unknown) => this.#options.log.debug(`Watching ${directory}: ${errorMessage(error)}`);
    try {
      const watcher = watch(directory, { persistent: false }, (_event, name) =>
        this.#report(typeof name === "string" ? join(directory, name) : directory),
      );
      watcher.on("error", failed);
      return watcher;
    } catch (error) {
      failed(error);
      return undefined;
    }
  }

  #report(path: string): void {
    if (this.#stopped) return;
    if (this.#touchesDirectories(path)) this.#sync();
    this.#options.onEvent(path);
  }

  /** True when a watched directory, or one that was missing, may have come, gone or been replaced. */
  #touchesDirectories(path: string): boolean {
    const below = path + sep;
    if (this.#directories.has(path)) return true;
    for (const directory of this.#directories.keys()) if (directory.startsWith(below)) return true;
    for (const wanted of this.#wanted) if (wanted.startsWith(below)) return true;
    return false;
  }
}

/** The directory of a path and the one above it, so that a replaced folder is noticed; for absent ones the nearest that exists. */
function addDirectories(path: string, found: Map<string, string>): void {
  let directory = dirname(path);
  for (let level = 0; level < 2; ) {
    const identity = found.get(directory) ?? identityOf(directory);
    if (identity !== undefined) {
      found.set(directory, identity);
      level++;
    }
    const parent = dirname(directory);
    // The root of the file system is no place to watch.
    if (dirname(parent) === parent) return;
    directory = parent;
  }
}

/** Inode numbers are used again at once, so the time of birth is part of it. */
function identityOf(directory: string): string | undefined {
  try {
    const stats = statSync(directory, { throwIfNoEntry: false, bigint: true });
    return stats?.isDirectory() ? `${stats.dev}:${stats.ino}:${stats.birthtimeNs}` : undefined;
  } catch {
    return undefined;
  }
}
