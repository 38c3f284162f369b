// The rules of the user and the project as they stand on disk. The project's come first and win a name.
import type { Dirent } from "node:fs";
import { readFile } from "node:fs/promises";
import { type ContentFolder, createToken, errorMessage, listFolder } from "mortise/extension";
import { parseRule, type Rule } from "./_rule.ts";

export interface RuleList {
  /** Sorted by name. */
  list(): readonly Rule[];
}

export const Rules = createToken<RuleList>("rules");

export class RuleStore implements RuleList {
  readonly #folders: readonly ContentFolder[];
  readonly #warn: (message: string) => void;
  #rules: readonly Rule[] = [];
  #stamp = "[]";

  constructor(folders: readonly ContentFolder[], warn: (message: string) => void) {
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
      for (const file of await listFolder(path, isRuleFile, this.#warn)) {
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

  async #read(file: string, origin: Rule["origin"]): Promise<Rule | undefined> {
    try {
      return await parseRule(file, await readFile(file, "utf8"), origin, this.#warn);
    } catch (error) {
      this.#warn(`Rule "${file}" is ignored: ${errorMessage(error)}`);
      return undefined;
    }
  }
}

function isRuleFile(entry: Dirent): boolean {
  return !entry.isDirectory() && /\.mdc?$/i.test(entry.name);
}
