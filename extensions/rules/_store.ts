// The rules of the user and the project as they stand on disk, then those that come with mortise. The project's come first and win
// a name.
import type { Dirent } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { contentFolders, createToken, errorMessage, listFolder } from "mortise/extension";
import { builtInRules } from "./_built-in.ts";
import { parseRule, type Rule, type RuleFolder } from "./_rule.ts";

export interface RuleList {
  /** Sorted by name. */
  list(): readonly Rule[];
}

export const Rules = createToken<RuleList>("rules");

/**
 * Where rules are, the first one wins a name: the project's, the user's, then what the project keeps for other programs
 * (agent-semantics §10 "Rules").
 */
export function ruleFolders({ home, cwd }: { home: string; cwd: string }): RuleFolder[] {
  const foreign = [".agents/rules", ".cursor/rules", ".windsurf/rules", ".clinerules"];
  return [
    ...contentFolders({ home, cwd }, "rules"),
    ...foreign.map((name): RuleFolder => ({ path: join(cwd, name), origin: "project", always: name === ".clinerules" })),
  ];
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
    for (const folder of this.#folders) {
      for (const file of await listFolder(folder.path, isRuleFile, this.#warn)) {
        const rule = await this.#read(file, folder);
        if (rule !== undefined && !rules.has(rule.payload.name)) rules.set(rule.payload.name, rule);
      }
    }
    for (const rule of await builtInRules()) if (!rules.has(rule.payload.name)) rules.set(rule.payload.name, rule);
    const found = [...rules.values()].sort((a, b) => (a.payload.name < b.payload.name ? -1 : 1));
    const stamp = JSON.stringify(found.map(({ payload, origin }) => ({ payload, origin })));
    if (stamp === this.#stamp) return false;
    this.#stamp = stamp;
    this.#rules = found;
    return true;
  }

  async #read(file: string, folder: RuleFolder): Promise<Rule | undefined> {
    try {
      return await parseRule(file, await readFile(file, "utf8"), folder, this.#warn);
    } catch (error) {
      this.#warn(`Rule "${file}" is ignored: ${errorMessage(error)}`);
      return undefined;
    }
  }
}

function isRuleFile(entry: Dirent): boolean {
  return !entry.isDirectory() && /\.mdc?$/i.test(entry.name);
}
