// Watches directories for a set of paths. Events are hints: they say where to look, and what is there decides. A directory that is
// swapped by rename is watched anew, because its watch stays with the old inode.
import { statSync } from "node:fs";
import { dirname, join, sep } from "node:path";
import type { FSWatcher } from "chokidar";
import type { Logger } from "../kernel/context.ts";
import { errorMessage } from "../kernel/errors.ts";

interface Watched {
  readonly watcher: FSWatcher;
  /** Which directory it was when the watch was set. */
  readonly identity: string;
  ready: boolean;
  settle(): void;
}

export interface PathWatcherOptions {
  /** Called with the path something happened at; a directory when no more is known. */
  onEvent(path: string): void;
  log: Logger;
}

export class PathWatcher {
  readonly #options: PathWatcherOptions;
  readonly #directories = new Map<string, Watched>();
  readonly #opening = new Set<Promise<void>>();
  #wanted: ReadonlySet<string> = new Set();
  #chokidar: typeof import("chokidar") | undefined;
  #stopped = false;

  constructor(options: PathWatcherOptions) {
    this.#options = options;
  }

  /** Directories watched now; one handle each. */
  get size(): number {
    return this.#directories.size;
  }

  /**
   * Watches these paths, present or not, and nothing else. Resolves when changes are seen from now on; events of directories that
   * were not watched before are reported once, because something may have changed in between.
   */
  async watch(paths: Iterable<string>): Promise<void> {
    this.#wanted = new Set(paths);
    this.#chokidar ??= await import("chokidar");
    this.#sync();
    const awaited = new Set<Promise<void>>();
    for (;;) {
      // Each round waits for directories that were opened meanwhile, never twice for one.
      const opening = [...this.#opening].filter((one) => !awaited.has(one));
      if (opening.length === 0) return;
      for (const one of opening) awaited.add(one);
      await Promise.all(opening);
    }
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    const open = [...this.#directories.values()];
    this.#directories.clear();
    await Promise.all(open.map(({ watcher }) => watcher.close()));
    // A closed watcher never tells that it was ready.
    this.#opening.clear();
    for (const { settle } of open) settle();
  }

  /** Brings the set of watches in line with what is wanted and what is on disk. */
  #sync(): void {
    if (this.#stopped) return;
    const needed = new Map<string, string>();
    for (const path of this.#wanted) addDirectories(path, needed);
    for (const [directory, watched] of this.#directories) {
      // One that is still being set up is looked at again when it is ready.
      if (!watched.ready || needed.get(directory) === watched.identity) continue;
      this.#directories.delete(directory);
      void watched.watcher.close();
    }
    for (const [directory, identity] of needed) {
      if (!this.#directories.has(directory)) this.#open(directory, identity);
    }
  }

  #open(directory: string, identity: string): void {
    if (this.#chokidar === undefined) return;
    const watcher = this.#chokidar.watch(directory, {
      depth: 0,
      ignoreInitial: true,
      // Others are shared by path within the process: one that was set before a swap would be handed out after it.
      persistent: false,
      // One handle per directory: it reports its children, whose own watches would only add handles.
      ignored: (path) => path !== directory,
    });
    let settle = () => {};
    const opened = new Promise<void>((resolve) => {
      settle = resolve;
    });
    const watched: Watched = { watcher, identity, ready: false, settle };
    this.#directories.set(directory, watched);
    this.#opening.add(opened);
    watcher.on("raw", (_event, name) => this.#report(typeof name === "string" ? join(directory, name) : directory));
    watcher.on("error", (error) => this.#options.log.debug(`Watching ${directory}: ${errorMessage(error)}`));
    watcher.once("ready", () => {
      watched.ready = true;
      this.#opening.delete(opened);
      settle();
      this.#report(directory);
    });
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
