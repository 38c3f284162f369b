// `@path` in a context file stands for the text of that file.
import { homedir } from "node:os";
import { dirname, resolve } from "node:path";
import type { PromptFiles, PromptText } from "./_files.ts";

/** A file imports a file imports a file …: this many times at most. */
const MAX_HOPS = 5;
/** Files that import each other several times over grow by powers: what a context file may become, and how often it may ask. */
const MAX_IMPORTED_CHARS = 200_000;
const MAX_LOOKUPS = 1000;

export interface ImportRules {
  readonly files: PromptFiles;
  /** Whether a real path may be read; a project's file may not reach out of the project. */
  allowed(realPath: string): boolean;
}

interface Expansion extends ImportRules {
  charsLeft: number;
  lookupsLeft: number;
}

/**
 * Fills in imports. Code spans and fenced code are left alone, and so is what names no text file, leads out of what is
 * allowed, is being imported already, or would make too much of it.
 */
export function expandImports(file: PromptText, rules: ImportRules): Promise<string> {
  return expand(file, { ...rules, charsLeft: MAX_IMPORTED_CHARS, lookupsLeft: MAX_LOOKUPS }, [file.realPath]);
}

async function expand(file: PromptText, rules: Expansion, chain: readonly string[]): Promise<string> {
  if (!file.text.includes("@")) return file.text;
  const lines: string[] = [];
  let fence: string | undefined;
  for (const line of file.text.split("\n")) {
    const mark = /^\s{0,3}(`{3,}|~{3,})/.exec(line)?.[1];
    if (fence === undefined && mark !== undefined) fence = mark;
    else if (fence !== undefined && mark?.startsWith(fence) === true) fence = undefined;
    else if (fence === undefined && line.includes("@")) {
      lines.push(await expandLine(line, file, rules, chain));
      continue;
    }
    lines.push(line);
  }
  return lines.join("\n");
}

async function expandLine(line: string, file: PromptText, rules: Expansion, chain: readonly string[]): Promise<string> {
  let expanded = "";
  for (const part of line.split(/(`+[^`]*`+)/)) {
    if (part.startsWith("`")) {
      expanded += part;
      continue;
    }
    let end = 0;
    for (const match of part.matchAll(/(?<=^|[\s(])@([^\s`()]+)/g)) {
      const path = (match[1] ?? "").replace(/[.,;:!?]+$/, "");
      const text = await importText(path, file, rules, chain);
      if (text === undefined) continue;
      expanded += part.slice(end, match.index) + text;
      end = match.index + 1 + path.length;
    }
    expanded += part.slice(end);
  }
  return expanded;
}

async function importText(
  path: string,
  file: PromptText,
  rules: Expansion,
  chain: readonly string[],
): Promise<string | undefined> {
  if (path === "" || chain.length > MAX_HOPS || rules.lookupsLeft <= 0) return undefined;
  rules.lookupsLeft--;
  const home = path === "~" || path.startsWith("~/") ? homedir() + path.slice(1) : path;
  const imported = await rules.files.read(resolve(dirname(file.realPath), home));
  if (imported === undefined || chain.includes(imported.realPath) || !rules.allowed(imported.realPath)) return undefined;
  if (imported.text.length > rules.charsLeft) return undefined;
  rules.charsLeft -= imported.text.length;
  return expand(imported, rules, [...chain, imported.realPath]);
}
