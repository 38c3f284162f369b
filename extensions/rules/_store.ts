// The rules of the user and the project as they stand on disk. The project's come first and win a name.
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { createToken, errorMessage, watchPaths } from "mortise/extension";
import { parseRule, type Rule } from "./_rule.ts";

export interface RuleList {
  /** Sorted by name. */
  list(): readonly Rule[];
}

export const Rules = createToken<RuleList>("rules");

export interface RuleFolder {
  readonly path: string;
  readonly origin: Rule["origin"];
}

export class RuleStore implements RuleList {
  readonly #folders: readonly RuleFolder[];
  readonly #warn: (message: string) => void;
  #rules: readonly Rule[] = [];
  #stamp = "[]";

  constructor(folders: readonly RuleFolder[], warn: (message: string) => void) {
    this.#folders = folders;
    this.#warn = warn;
  }

  list(): readonly Rule[] {
    return this.#rules;
  }

  /** Reads the folders; true when a rule is another one than before. */
  async scan(): Promise<boolean> {
    const rules = new Map<string, Rule>();
    for (const { path, origin } of this.#folders) {
      for (const file of await this.#files(path)) {
        const rule = await this.#read(file, origin);
        if (rule !== undefined && !rules.has(rule.payload.name)) rules.set(rule.payload.name, rule);
      }
    }
    const found = [...rules.values()].sort((a, b) => (a.payload.name < b.payload.name ? -1 : 1));
    const stamp = JSON.stringify(found.map(({ payload, origin }) => ({ payload, origin })));
    if (stamp === this.#stamp) return false;
    this.#stamp = stamp;
    this.#rules = found;
    return true;
  }

  /** Scans after every change on disk; returns the end of it. */
  watch(onChange: () => void): () => void {
    let scanning = Promise.resolve();
    const watch = watchPaths(
      this.#folders.map((folder) => folder.path),
      () => {
        scanning = scanning
          .then(async () => {
            if (await this.scan()) onChange();
          })
          .catch((error: unknown) => this.#warn(`Cannot read rules: ${errorMessage(error)}`));
      },
    );
    return () => watch.close();
  }

  async #read(file: string, origin: Rule["origin"]): Promise<Rule | undefined> {
    try {
      return await parseRule(file, await readFile(file, "utf8"), origin, this.#warn);
    } catch (error) {
      this.#warn(`Rule "${file}" is ignored: ${errorMessage(error)}`);
      return undefined;
    }
  }

  async #files(path: string): Promise<string[]> {
    try {
      const entries = await readdir(path, { withFileTypes: true });
      return entries
        .filter((entry) => !entry.isDirectory() && !entry.name.startsWith(".") && /\.mdc?$/i.test(entry.name))
        .map((entry) => join(path, entry.name))
        .sort();
    } catch (error) {
      const isMissing = error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR");
      if (!isMissing) this.#warn(`Cannot read folder "${path}": ${errorMessage(error)}`);
      return [];
    }
  }
}
