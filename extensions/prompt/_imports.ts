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
  const { text } = file;
  if (!text.includes("@")) return text;
  const code = codeRanges(text);
  let expanded = "";
  let end = 0;
  for (const match of text.matchAll(/(?<=^|[\s(])@([^\s`()]+)/g)) {
    const { index } = match;
    while (code[0] !== undefined && code[0].end <= index) code.shift();
    if (code[0] !== undefined && code[0].start <= index) continue;
    const path = (match[1] ?? "").replace(/[.,;:!?]+$/, "");
    const imported = await importText(path, file, rules, chain);
    if (imported === undefined) continue;
    expanded += text.slice(end, index) + imported;
    end = index + 1 + path.length;
  }
  return expanded + text.slice(end);
}

interface Range {
  readonly start: number;
  readonly end: number;
}

/** Where code stands, in order: fenced blocks, in lists and quotes as well, and spans between runs of backticks of one length. */
function codeRanges(text: string): Range[] {
  const ranges: Range[] = [];
  let from = 0;
  for (const fence of fences(text)) {
    ranges.push(...spans(text, from, fence.start), fence);
    from = fence.end;
  }
  ranges.push(...spans(text, from, text.length));
  return ranges;
}

function fences(text: string): Range[] {
  const found: Range[] = [];
  let open: { mark: string; start: number } | undefined;
  let start = 0;
  for (const line of text.split("\n")) {
    const [, mark, rest = ""] = /^(?:[ \t]|>|[-*+][ \t]|\d+[.)][ \t])*(`{3,}|~{3,})(.*)$/.exec(line) ?? [];
    const end = start + line.length;
    if (mark !== undefined && open === undefined) {
      // Text in the language's place may not hold what opens it, or it is a span.
      if (mark.startsWith("~") || !rest.includes("`")) open = { mark, start };
    } else if (mark !== undefined && open !== undefined && mark.startsWith(open.mark) && rest.trim() === "") {
      found.push({ start: open.start, end });
      open = undefined;
    }
    start = end + 1;
  }
  if (open !== undefined) found.push({ start: open.start, end: text.length });
  return found;
}

/** Spans of code between two places. None goes over a blank line. */
function spans(text: string, from: number, to: number): Range[] {
  const found: Range[] = [];
  const span = /(?<!`)(`+)(?!`)(?:(?!\n[ \t]*\n)[\s\S])*?(?<!`)\1(?!`)/g;
  for (const match of text.slice(from, to).matchAll(span)) {
    const start = from + match.index;
    found.push({ start, end: start + match[0].length });
  }
  return found;
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
