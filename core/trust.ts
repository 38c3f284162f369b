// Whether a project's code may run: `--trust`, or an earlier yes stored outside the project by real path with the hashes seen
// (DESIGN §3 "project code"). Asking is the job of extensions/trust; the answer lives here because the loader needs it first.
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, realpathSync, renameSync, statSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { z } from "zod";
import { errorMessage } from "./kernel/errors.ts";
import type { Trust } from "./services/trust.ts";

const Store = z.object({
  version: z.literal(1),
  projects: z.record(z.string(), z.object({ files: z.record(z.string(), z.string()), at: z.string() })),
});
type Store = z.infer<typeof Store>;

/** Names under the project directory whose content the consent covers. */
const COVERED = ["extensions", "config.yml", "models.yml"];

export interface TrustOptions {
  /** `$MORTISE_HOME/trust.json`. */
  file: string;
  /** `--trust`: the working directory is trusted for this process. */
  always: string | undefined;
  warn: (message: string) => void;
}

export class ProjectTrust implements Trust {
  readonly #options: TrustOptions;
  readonly #listeners = new Set<() => void>();
  /** Real paths that were trusted in this process; edits of trusted code reload without asking. */
  readonly #session = new Set<string>();

  constructor(options: TrustOptions) {
    this.#options = options;
    if (options.always !== undefined) this.#session.add(real(options.always));
  }

  isTrusted(dir: string): boolean {
    const key = real(dir);
    if (this.#session.has(key)) return true;
    const known = this.#read().projects[key];
    if (known === undefined || !sameFiles(known.files, hashes(key))) return false;
    this.#session.add(key);
    return true;
  }

  /** Files of the project that would gain rights, relative to it; with `changed` when they differ from what was trusted. */
  candidates(dir: string): { files: string[]; changed: boolean } {
    const key = real(dir);
    const files = Object.keys(hashes(key));
    return { files, changed: this.#read().projects[key] !== undefined };
  }

  grant(dir: string): void {
    const key = real(dir);
    this.#session.add(key);
    const store = this.#read();
    store.projects[key] = { files: hashes(key), at: new Date().toISOString() };
    this.#write(store);
    for (const listener of [...this.#listeners]) listener();
  }

  revoke(dir: string): void {
    const key = real(dir);
    this.#session.delete(key);
    const store = this.#read();
    delete store.projects[key];
    this.#write(store);
    for (const listener of [...this.#listeners]) listener();
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
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

  #write(store: Store): void {
    const { file } = this.#options;
    mkdirSync(join(file, ".."), { recursive: true, mode: 0o700 });
    const scratch = `${file}.${process.pid}.tmp`;
    writeFileSync(scratch, `${JSON.stringify(store, null, 2)}\n`, { mode: 0o600 });
    renameSync(scratch, file);
  }
}

function sameFiles(a: Record<string, string>, b: Record<string, string>): boolean {
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => a[name] === b[name]);
}

/** Hash of every covered file, by path relative to the project; links are followed, so what would run is what is hashed. */
function hashes(project: string): Record<string, string> {
  const found: Record<string, string> = {};
  const visit = (path: string, depth: number) => {
    const stat = statSync(path, { throwIfNoEntry: false });
    if (stat?.isDirectory() && depth < 8) {
      for (const name of readdirSync(path).sort())
        if (name !== "node_modules" && name !== ".git") visit(join(path, name), depth + 1);
    } else if (stat?.isFile()) {
      found[relative(project, path)] = createHash("sha256").update(readFileSync(path)).digest("hex");
    }
  };
  for (const name of COVERED) visit(join(project, ".mortise", name), 0);
  return found;
}

function real(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
