// Whether a project's code may run: `--trust`, or an earlier yes stored outside the project by real path with the hashes seen
// (DESIGN §3 "project code"). When to ask is the job of extensions/trust; the answer lives here because the loader needs it first.
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { z } from "zod";
import { errorMessage } from "./kernel/errors.ts";
import type { Trust, TrustCase } from "./services/trust.ts";
import { codeOf, hashOf, isCovered, keyOf, real } from "./trust-files.ts";

const Store = z.object({
  version: z.literal(1),
  projects: z.record(z.string(), z.object({ files: z.record(z.string(), z.string()), at: z.string() })),
});
type Store = z.infer<typeof Store>;

export interface TrustOptions {
  /** `$MORTISE_HOME/trust.json`. */
  file: string;
  /** `--trust`: the working directory is trusted for this process. */
  always: string | undefined;
  warn: (message: string) => void;
}

/** A file's content before the agent wrote it, by real path. */
type Written = Map<string, string>;

export class ProjectTrust implements Trust {
  readonly #options: TrustOptions;
  readonly #listeners = new Set<() => void>();
  /** Real paths that were trusted in this process; edits of trusted code reload without asking. */
  readonly #session = new Set<string>();
  readonly #written: Written = new Map();

  constructor(options: TrustOptions) {
    this.#options = options;
    if (options.always !== undefined) this.#session.add(real(options.always));
  }

  isTrusted(dir: string, file?: string): boolean {
    const key = real(dir);
    return this.#isProjectTrusted(key) && (file === undefined || !this.isHeld(real(file)));
  }

  #isProjectTrusted(key: string): boolean {
    if (this.#session.has(key)) return true;
    const known = this.#read().projects[key];
    if (known === undefined || !sameFiles(known.files, codeOf(key, Object.keys(known.files)))) return false;
    this.#session.add(key);
    return true;
  }

  /** True for a file the agent wrote since it was trusted; one that is as it was before is none. */
  isHeld(realPath: string): boolean {
    const before = this.#written.get(realPath);
    return before !== undefined && before !== hashOf(realPath);
  }

  /** Remembers what a file holds before a tool of the daemon writes it. */
  markWriting(realPath: string): void {
    if (!this.#written.has(realPath)) this.#written.set(realPath, hashOf(realPath));
  }

  /** What of a directory waits for a yes; see `ProjectCode`. */
  pending(dir: string, settings: boolean): (TrustCase & { hashes: Record<string, string> }) | undefined {
    const key = real(dir);
    if (this.#isProjectTrusted(key)) return this.#heldCase(key);
    const known = this.#read().projects[key];
    const all = codeOf(key, Object.keys(known?.files ?? {}));
    const active = Object.keys(all).filter((name) => settings || name !== join(".mortise", "config.yml"));
    if (active.length === 0) return undefined;
    if (known === undefined) return { reason: "new", files: active, key: keyOf("new", all), hashes: all };
    const changed = Object.keys(all).filter((name) => known.files[name] !== all[name]);
    const files = changed.length > 0 ? changed : active;
    return { reason: "changed", files, key: keyOf("changed", all), hashes: all };
  }

  #heldCase(key: string): (TrustCase & { hashes: Record<string, string> }) | undefined {
    const held = [...this.#written.keys()].filter((path) => this.isHeld(path));
    if (held.length === 0) return undefined;
    const hashes = Object.fromEntries(held.map((path) => [relative(key, path), hashOf(path)]));
    return { reason: "written", files: Object.keys(hashes), key: keyOf("written", hashes), hashes };
  }

  /** Acts on a yes: the whole project, or what the agent wrote of it. */
  accept(dir: string, accepted: TrustCase & { hashes: Record<string, string> }): void {
    const key = real(dir);
    if (accepted.reason !== "written") return this.grant(dir);
    const store = this.#read();
    const known = store.projects[key];
    for (const name of accepted.files) {
      this.#written.delete(join(key, name));
      if (known !== undefined) known.files[name] = accepted.hashes[name] ?? "";
    }
    if (known !== undefined) this.#write(store);
    this.#tell();
  }

  grant(dir: string): void {
    const key = real(dir);
    this.#session.add(key);
    this.#written.clear();
    const store = this.#read();
    store.projects[key] = { files: codeOf(key), at: new Date().toISOString() };
    this.#write(store);
    this.#tell();
  }

  revoke(dir: string): void {
    const key = real(dir);
    this.#session.delete(key);
    const store = this.#read();
    delete store.projects[key];
    this.#write(store);
    this.#tell();
  }

  /** Files outside the covered folders that trusted code turned out to consist of: the yes is for them as they were then. */
  cover(dir: string, paths: readonly string[]): void {
    const key = real(dir);
    const store = this.#read();
    const known = store.projects[key];
    if (known === undefined) return;
    const names = paths
      .filter((path) => !isCovered(key, path) && !path.includes("/node_modules/") && !this.isHeld(path))
      .map((path) => relative(key, path))
      .filter((name) => known.files[name] === undefined);
    if (names.length === 0) return;
    for (const name of names) known.files[name] = hashOf(join(key, name));
    this.#write(store);
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #tell(): void {
    for (const listener of [...this.#listeners]) listener();
  }

  #read(): Store {
    try {
      return Store.parse(JSON.parse(readFileSync(this.#options.file, "utf8")));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") {
        this.#options.warn(`${this.#options.file} cannot be read, so no project is trusted: ${errorMessage(error)}`);
      }
      return { version: 1, projects: {} };
    }
  }

  /** A store that cannot be written means being asked again; the yes holds for this process. */
  #write(store: Store): void {
    const { file } = this.#options;
    try {
      mkdirSync(join(file, ".."), { recursive: true, mode: 0o700 });
      const scratch = `${file}.${process.pid}.tmp`;
      writeFileSync(scratch, `${JSON.stringify(store, null, 2)}\n`, { mode: 0o600 });
      renameSync(scratch, file);
    } catch (error) {
      this.#options.warn(`${file} cannot be written, so the answer holds until the daemon ends: ${errorMessage(error)}`);
    }
  }
}

function sameFiles(a: Record<string, string>, b: Record<string, string>): boolean {
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => a[name] === b[name]);
}
