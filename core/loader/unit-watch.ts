// When a unit is looked at again. Optimistic, because a failed reload costs nothing: the first event of a burst is tried at once,
// later ones are merged (DESIGN §5 "Watching"). What is on disk decides, not the event.

import { basename, dirname, join } from "node:path";
import type { Logger } from "../kernel/context.ts";
import { awaitedTargets, candidateFolders, isIgnoredName } from "./discover.ts";
import { realPath } from "./files.ts";
import type { Root } from "./host.ts";
import type { Unit } from "./unit.ts";
import { PathWatcher } from "./watch.ts";

/** Events closer together than this are one burst, tried again this long after its last. */
const MERGE_MS = 60;
/** An empty file is usually half of a save. */
const EMPTY_MS = 150;
/** An absent one is usually between two halves of a rename. */
const ABSENT_MS = 500;

export interface UnitWatchOptions {
  log: Logger;
  units(): Iterable<Unit>;
  roots(): readonly Root[];
  rescan(root: Root): void;
  /** The unit's files differ from what was loaded. */
  changed(unit: Unit): void;
  /** The unit, or one of its entries, has been absent too long. */
  gone(unit: Unit): void;
}

export class UnitWatch {
  readonly #options: UnitWatchOptions;
  readonly #watcher: PathWatcher;
  /** Units whose present burst had its attempt. */
  readonly #tried = new WeakSet<Unit>();
  readonly #rescans = new Map<Root, NodeJS.Immediate>();
  /** Folder inside a root → that root. */
  readonly #folders = new Map<string, Root>();
  /** Where a link of a root leads, which is not there → that root. */
  readonly #awaited = new Map<string, Root>();
  #refreshing: NodeJS.Immediate | undefined;
  #running = false;

  constructor(options: UnitWatchOptions) {
    this.#options = options;
    this.#watcher = new PathWatcher({ log: options.log, onEvent: (path) => this.#onEvent(path) });
  }

  /** Directories watched now. */
  get handles(): number {
    return this.#watcher.size;
  }

  /** Every change from now on is seen. */
  start(): void {
    this.#running = true;
    this.refresh();
  }

  /** Watches what the units depend on now. */
  refresh(): void {
    if (!this.#running) return;
    const awaited = new Map(this.#awaited);
    this.#watcher.watch(this.#paths());
    // What came since the last look for units is not waited for any more, so no event will tell of it.
    for (const [target, root] of awaited) if (!this.#awaited.has(target)) this.#rescanSoon(root);
  }

  /** The same in a moment, once for all who ask for it until then. */
  refreshSoon(): void {
    this.#refreshing ??= setImmediate(() => {
      this.#refreshing = undefined;
      this.refresh();
    });
  }

  stop(): void {
    this.#running = false;
    clearImmediate(this.#refreshing);
    for (const immediate of this.#rescans.values()) clearImmediate(immediate);
    for (const unit of this.#options.units()) this.drop(unit);
    this.#watcher.stop();
  }

  /** Forgets the timers of a unit. */
  drop(unit: Unit): void {
    clearTimeout(unit.checkTimer);
    clearTimeout(unit.absenceTimer);
    if (unit.checkSoon !== undefined) clearImmediate(unit.checkSoon);
    unit.checkSoon = undefined;
    unit.checkTimer = undefined;
    unit.absenceTimer = undefined;
  }

  /** Something may have happened to the unit. */
  touch(unit: Unit): void {
    if (!this.#running || !unit.wanted || unit.source === undefined) return;
    const now = performance.now();
    if (now - unit.lastEventAt > MERGE_MS) this.#tried.delete(unit);
    unit.lastEventAt = now;
    if (!this.#tried.has(unit)) unit.checkSoon ??= setImmediate(() => this.#check(unit));
    this.#checkAfter(unit, MERGE_MS);
  }

  #paths(): Set<string> {
    const paths = new Set<string>();
    this.#folders.clear();
    this.#awaited.clear();
    for (const root of this.#options.roots()) {
      paths.add(root.kind === "folder" ? join(root.path, "*") : root.path);
      for (const target of awaitedTargets(root)) {
        this.#awaited.set(target, root);
        paths.add(target);
      }
      for (const folder of candidateFolders(root)) {
        const real = realPath(folder);
        if (real === undefined) continue;
        this.#folders.set(real, root);
        paths.add(join(real, "*"));
      }
    }
    for (const unit of this.#options.units()) {
      if (unit.source === undefined || !unit.enabled) continue;
      paths.add(unit.source.path);
      if (unit.source.kind === "folder") paths.add(join(unit.source.id, "*"));
      for (const path of unit.watched) addBranch(path, unit.source.folder, paths);
    }
    return paths;
  }

  #onEvent(path: string): void {
    if (!this.#running) return;
    for (const unit of this.#options.units()) if (unit.concerns(path)) this.touch(unit);
    for (const root of this.#options.roots()) if (this.#concernsRoot(root, path)) this.#rescanSoon(root);
  }

  #concernsRoot(root: Root, path: string): boolean {
    if (path === root.path || root.path.startsWith(`${path}/`)) return true;
    for (const [target, of] of this.#awaited) if (of === root && `${target}/`.startsWith(`${path}/`)) return true;
    if (root.kind === "unit" || isIgnoredName(basename(path))) return false;
    return dirname(path) === root.path || this.#folders.get(path) === root || this.#folders.get(dirname(path)) === root;
  }

  #rescanSoon(root: Root): void {
    if (this.#rescans.has(root)) return;
    this.#rescans.set(
      root,
      setImmediate(() => {
        this.#rescans.delete(root);
        // In this order: what comes after the look for units is told by a watch that stands already.
        this.refresh();
        this.#options.rescan(root);
      }),
    );
  }

  #checkAfter(unit: Unit, delayMs: number): void {
    clearTimeout(unit.checkTimer);
    unit.checkTimer = setTimeout(() => this.#check(unit), delayMs);
  }

  #check(unit: Unit): void {
    unit.checkSoon = undefined;
    if (!this.#running || !unit.wanted) return;
    const change = unit.look();
    if (change !== "absent") {
      clearTimeout(unit.absenceTimer);
      unit.absenceTimer = undefined;
      unit.goneTold = false;
    }
    switch (change) {
      case "none":
        return;
      case "absent":
        if (!unit.goneTold) unit.absenceTimer ??= setTimeout(() => this.#absent(unit), ABSENT_MS);
        return;
      case "empty": {
        const quiet = performance.now() - unit.lastEventAt;
        if (quiet >= EMPTY_MS) this.#options.changed(unit);
        else this.#checkAfter(unit, EMPTY_MS - quiet + 1);
        return;
      }
      case "changed":
        this.#tried.add(unit);
        this.#options.changed(unit);
    }
  }

  #absent(unit: Unit): void {
    unit.absenceTimer = undefined;
    if (!this.#running || !unit.wanted) return;
    if (unit.look() !== "absent") return this.#check(unit);
    unit.goneTold = true;
    this.#options.gone(unit);
  }
}

/** A path and the folders it lies in, up to one that also holds the unit: any of them may be replaced as a whole. */
function addBranch(path: string, folder: string, paths: Set<string>): void {
  for (let at = path; !paths.has(at) && !`${folder}/`.startsWith(`${at}/`); at = dirname(at)) paths.add(at);
}
