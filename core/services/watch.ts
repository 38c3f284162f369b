// Tells when named files or folders change, appear or vanish. For configuration and text files; extensions' code has the
// loader's own watcher. One fs.watch per directory, never recursive: on Node 20 a recursive watch goes blind after a rename.
// Invariant: after the returned `close` nothing is left, and no timer or watcher keeps the process alive.
import { type FSWatcher, realpathSync, statSync, watch } from "node:fs";
import { dirname, join, resolve } from "node:path";

export interface PathWatchOptions {
  /** Quiet time before `onChange` is called. Default 60 ms. */
  readonly debounceMs?: number | undefined;
  /** Watching failed (too many watches); called once. Changes are no longer seen. */
  readonly onError?: ((error: Error) => void) | undefined;
}

export interface PathWatch {
  /** Watches these paths from now on instead. */
  update(paths: readonly string[]): void;
  close(): void;
}

interface Watched {
  watcher: FSWatcher;
  /** Which directory it was when the watch was set. */
  identity: string;
}

/**
 * Watches paths that need not exist yet. A folder is watched for its direct children, a file for its content; a symbolic
 * link for the link and for what it points to.
 */
export function watchPaths(paths: readonly string[], onChange: () => void, options: PathWatchOptions = {}): PathWatch {
  const watched = new Map<string, Watched>();
  let targets: ReadonlySet<string> = new Set();
  let ancestors: ReadonlySet<string> = new Set();
  let timer: NodeJS.Timeout | undefined;
  let closed = false;
  let failed = false;

  const arm = () => {
    const wanted = wantedDirectories(targets);
    for (const [directory, entry] of watched) {
      if (wanted.get(directory) === entry.identity) continue;
      entry.watcher.close();
      watched.delete(directory);
    }
    for (const [directory, identity] of wanted) {
      if (watched.has(directory)) continue;
      try {
        const watcher = watch(directory, { persistent: false }, (_event, name) => seen(directory, name));
        watcher.on("error", () => schedule());
        watched.set(directory, { watcher, identity });
      } catch (error) {
        // Gone since we looked: its parent tells. Anything else means no watches are left.
        if (failed || (error instanceof Error && "code" in error && error.code === "ENOENT")) continue;
        failed = true;
        options.onError?.(error instanceof Error ? error : new Error(String(error)));
      }
    }
  };
  const seen = (directory: string, name: string | null) => {
    if (closed) return;
    if (name !== null && !targets.has(directory)) {
      const path = join(directory, name);
      if (!targets.has(path) && !ancestors.has(path)) return;
    }
    schedule();
  };
  const schedule = () => {
    if (closed) return;
    clearTimeout(timer);
    timer = setTimeout(() => {
      arm();
      onChange();
    }, options.debounceMs ?? 60);
    timer.unref();
  };
  const update = (next: readonly string[]) => {
    if (closed) return;
    targets = withLinkTargets(next);
    ancestors = ancestorsOf(targets);
    arm();
  };
  update(paths);
  return {
    update,
    close() {
      closed = true;
      clearTimeout(timer);
      for (const { watcher } of watched.values()) watcher.close();
      watched.clear();
    },
  };
}

/** Directories to watch, with what tells them apart: each target that is a folder, its parent, and the nearest ones that exist. */
function wantedDirectories(targets: ReadonlySet<string>): Map<string, string> {
  const wanted = new Map<string, string>();
  for (const target of targets) {
    const own = identityOf(target);
    if (own !== undefined) wanted.set(target, own);
    // Two levels up, so that a folder that is removed and made again is noticed.
    let found = 0;
    for (let directory = dirname(target); found < 2; directory = dirname(directory)) {
      const identity = wanted.get(directory) ?? identityOf(directory);
      if (identity !== undefined) {
        wanted.set(directory, identity);
        found++;
      }
      if (directory === dirname(directory)) break;
    }
  }
  return wanted;
}

/** Inode numbers are used again at once, so the time of birth is part of it. */
function identityOf(path: string): string | undefined {
  try {
    const stat = statSync(path, { bigint: true });
    return stat.isDirectory() ? `${stat.dev}:${stat.ino}:${stat.birthtimeNs}` : undefined;
  } catch {
    return undefined;
  }
}

function withLinkTargets(paths: readonly string[]): Set<string> {
  const targets = new Set<string>();
  for (const path of paths.map((path) => resolve(path))) {
    targets.add(path);
    try {
      targets.add(realpathSync(path));
    } catch {
      // Does not exist yet.
    }
  }
  return targets;
}

function ancestorsOf(targets: ReadonlySet<string>): Set<string> {
  const ancestors = new Set<string>();
  for (const target of targets) {
    for (let directory = dirname(target); !ancestors.has(directory); directory = dirname(directory)) {
      ancestors.add(directory);
      if (directory === dirname(directory)) break;
    }
  }
  return ancestors;
}
