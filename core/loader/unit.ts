// One unit over its whole life: where it lies, which generation answers, what was seen on disk at the last load. It decides
// nothing; the loader does.
import { basename, dirname } from "node:path";
import type { Origin, Owner } from "../kernel/scope.ts";
import { describe, isIgnoredName, type UnitSource } from "./discover.ts";
import { fingerprint, readNow, realPath, sizeOf } from "./files.ts";
import type { EvaluatedFiles, Generation } from "./generation.ts";
import type { BuiltinUnit, LoadTimings, ReloadReport, Root, UnitState } from "./host.ts";

/** A file as the last load saw it; `fingerprint` is null for an absent one. */
interface Seen {
  fingerprint: string | null;
  hash: string | undefined;
}

/** Paths as they were when a load began. */
export type Snapshot = ReadonlyMap<string, string | null>;

/** What is on disk, compared with the last load. */
export type Change = "none" | "changed" | "empty" | "absent";

export class Unit {
  id: string;
  readonly origin: Origin;
  /** Place within its rank; never changes. */
  readonly order: number;
  readonly root: Root | undefined;
  readonly builtin: BuiltinUnit | undefined;
  source: UnitSource | undefined;
  state: UnitState = "discovered";
  active: Generation | undefined;
  draining: Generation | undefined;
  /** Forces the draining generation out. */
  forceDrain: (() => void) | undefined;
  enabled = true;
  /** Gone for good: whatever is still loading is thrown away. */
  removed = false;
  error: unknown;
  timings: LoadTimings = { resolve: 0, transpile: 0, evaluate: 0, setup: 0, swap: 0 };
  /** Grows with every reason to load; compared with its value at the start of a load, so that no edit is lost. */
  dirty = 0;
  /** Asked for by somebody, not by a file: loaded even when the files are the same. */
  forced = false;
  /** Waits because of a file it may not read (`LoaderOptions.mayRead`). */
  held = false;
  /** That it, or an entry of it, is absent for good has been acted on. */
  goneTold = false;
  /** Required services that nobody provides; it is loaded again when they are there. */
  waitsFor: readonly string[] = [];
  running: Promise<ReloadReport> | undefined;
  /** Wakes of `watch` timers. */
  lastEventAt = Number.NEGATIVE_INFINITY;
  checkSoon: NodeJS.Immediate | undefined;
  checkTimer: NodeJS.Timeout | undefined;
  absenceTimer: NodeJS.Timeout | undefined;
  /** Times of the last re-activations by a service, against circles. */
  reactivations: number[] = [];
  readonly #onDirty = new Set<() => void>();
  #generation = 0;
  #seen = new Map<string, Seen>();

  constructor(parts: {
    id: string;
    origin: Origin;
    order: number;
    root?: Root | undefined;
    builtin?: BuiltinUnit | undefined;
    source?: UnitSource | undefined;
  }) {
    this.id = parts.id;
    this.origin = parts.origin;
    this.order = parts.order;
    this.root = parts.root;
    this.builtin = parts.builtin;
    this.source = parts.source;
  }

  get owner(): Owner {
    return { id: this.id, origin: this.origin, order: this.order };
  }

  /** False once it was taken away or switched off: then nothing of it is loaded. */
  get wanted(): boolean {
    return !this.removed && this.enabled;
  }

  nextGeneration(): number {
    return ++this.#generation;
  }

  /** Everything whose change matters, absent candidates included. */
  get watched(): Iterable<string> {
    return this.#seen.keys();
  }

  /** Files that were there at the last load. */
  get files(): string[] {
    return [...this.#seen].filter(([, seen]) => seen.fingerprint !== null).map(([path]) => path);
  }

  markDirty(): void {
    this.dirty++;
    for (const wake of [...this.#onDirty]) wake();
  }

  /** True as soon as there is a reason to load that is newer than `seen`; false when none comes in time. */
  becomesDirty(seen: number, withinMs: number): Promise<boolean> {
    if (this.dirty !== seen) return Promise.resolve(true);
    return new Promise((resolve) => {
      const settle = (dirty: boolean) => {
        clearTimeout(timer);
        this.#onDirty.delete(wake);
        resolve(dirty);
      };
      const wake = () => settle(true);
      const timer = setTimeout(() => settle(false), withinMs);
      this.#onDirty.add(wake);
    });
  }

  /** True when `path`, or something below it, is watched. */
  concerns(path: string): boolean {
    if (this.#seen.has(path)) return true;
    const below = `${path}/`;
    if (this.source?.path === path || this.source?.path.startsWith(below)) return true;
    // A new file in a folder unit may be a new contribution.
    if (this.source?.kind === "folder" && dirname(path) === this.source.id && !isIgnoredName(basename(path))) return true;
    for (const watched of this.#seen.keys()) if (watched.startsWith(below)) return true;
    return false;
  }

  /** What a load starts from. */
  snapshot(): Snapshot {
    return new Map([...this.#seen.keys()].map((path) => [path, fingerprint(path)]));
  }

  /**
   * Remembers what a load looked at. After a failure, told by what it started from, the files of the active generation stay
   * watched as well: as they were then, because what is there has been tried.
   */
  remember(generation: Generation, failed?: Snapshot): void {
    const seen = new Map<string, Seen>(failed === undefined ? [] : this.#seen);
    if (failed === undefined) this.goneTold = false;
    for (const [path, state] of failed ?? []) {
      if (seen.get(path)?.fingerprint !== state) seen.set(path, { fingerprint: state, hash: undefined });
    }
    const { evaluation } = generation;
    for (const path of this.source?.decidedBy ?? []) seen.set(path, { fingerprint: fingerprint(path), hash: undefined });
    if (evaluation !== undefined) collect(evaluation, seen);
    const { source } = this;
    if (source?.kind === "file" && source.path !== source.id) {
      seen.set(source.path, evaluation?.files.get(source.id) ?? { fingerprint: null, hash: undefined });
    }
    for (const path of source?.entries ?? [])
      if (!seen.has(path)) seen.set(path, { fingerprint: fingerprint(path), hash: undefined });
    this.#seen = seen;
  }

  /** Adds what the active generation read after its load. */
  rememberMore(evaluation: EvaluatedFiles): void {
    const read = new Map<string, Seen>();
    collect(evaluation, read);
    for (const [path, seen] of read) if (!this.#seen.has(path)) this.#seen.set(path, seen);
  }

  /** Another link leads to the same files: what was seen through the one that went is seen through it now. */
  goOverTo(source: UnitSource): void {
    const before = this.source?.path;
    const seen = before === undefined || before === source.path ? undefined : this.#seen.get(before);
    if (before !== undefined && seen !== undefined) {
      this.#seen.delete(before);
      this.#seen.set(source.path, seen);
    }
    this.source = source;
    this.goneTold = false;
  }

  /** Looks at the disk. Touched files with the same content are no change. */
  look(): Change {
    const { source } = this;
    if (source === undefined) return "none";
    const now = describe(source.path);
    if (now === undefined || now.id !== source.id) return "absent";
    const isOtherManifest = (path: string) => fingerprint(path) !== this.#seen.get(path)?.fingerprint;
    // An entry that vanished may be in the middle of being replaced, unless it is no longer asked for.
    if (!source.decidedBy.some(isOtherManifest) && source.entries.some((path) => fingerprint(path) === null)) return "absent";
    const empty = { found: false };
    let changed = now.entries.join("\n") !== source.entries.join("\n") || now.problem !== source.problem;
    for (const [path, seen] of this.#seen) changed = this.#differs(path, seen, empty) || changed;
    if (!changed) return "none";
    return empty.found ? "empty" : "changed";
  }

  #differs(path: string, seen: Seen, empty: { found: boolean }): boolean {
    const now = fingerprint(path);
    if (now === seen.fingerprint) return false;
    if (now !== null && sizeOf(path) === 0) empty.found = true;
    if (now === null || !seen.hash) return true;
    try {
      const file = readNow(path);
      if (file.hash !== seen.hash) return true;
      seen.fingerprint = file.fingerprint;
      return false;
    } catch {
      return true;
    }
  }
}

/** What an evaluation looked at: files as they were read, links, and candidates that were absent. */
function collect({ files, links, missing }: EvaluatedFiles, seen: Map<string, Seen>): void {
  for (const path of missing) seen.set(path, { fingerprint: null, hash: undefined });
  for (const path of links) {
    seen.set(path, files.get(realPath(path) ?? path) ?? { fingerprint: fingerprint(path), hash: undefined });
  }
  for (const [path, file] of files) seen.set(path, file);
}
