// Reading a patch as models write it: unified diffs whose counts are off, hunks without line numbers, the form with
// `*** Update File`. What a line means is never guessed, only where a hunk ends.
import { ToolError } from "mortise/extension";

export interface HunkLine {
  readonly kind: " " | "-" | "+";
  /** Without the line end. */
  readonly text: string;
  /** Marked as the last line of a file without a newline. */
  noNewline?: true;
}

export interface Hunk {
  /** As messages name it. */
  readonly name: string;
  /** The line it says it starts at, from 1, and how many it says it covers. */
  readonly stated: { readonly line: number; readonly count: number } | undefined;
  /** A line above the place, given instead of numbers. */
  readonly anchor: string | undefined;
  readonly lines: readonly HunkLine[];
}

export interface Patch {
  /** The file it names. */
  readonly path: string | undefined;
  readonly hunks: readonly Hunk[];
}

interface Section {
  path: string | undefined;
  hunks: Hunk[];
}

const MARKS = { add: "it creates a file; use write", delete: "it deletes a file; use bash", move: "it renames a file; use bash" };
const numbered = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;

/** @throws {ToolError} when it is no patch, or not one that changes one file that exists */
export function parsePatch(text: string): Patch {
  const lines = text.replace(/\r?\n$/, "").split(/\r?\n/);
  const sections: Section[] = [{ path: undefined, hunks: [] }];
  for (let at = 0; at < lines.length; ) {
    const line = lines[at] ?? "";
    const marked = /^\*\*\* (Update|Add|Delete) File: (.+)$/.exec(line);
    if (isFileHeader(lines, at)) {
      sections.push({ path: namedBy(line, lines[at + 1] ?? ""), hunks: [] });
      at += 2;
    } else if (marked !== null) {
      if (marked[1] !== "Update") throw refused(marked[1] === "Add" ? MARKS.add : MARKS.delete);
      sections.push({ path: (marked[2] ?? "").trim(), hunks: [] });
      at++;
    } else if (/^(?:\*\*\* Move to|rename to)[: ]/.test(line)) {
      throw refused(MARKS.move);
    } else if (/^@@(?: |$)/.test(line)) {
      const { hunk, next } = readHunk(lines, at);
      sections.at(-1)?.hunks.push(hunk);
      at = next;
    } else {
      at++;
    }
  }
  const changed = sections.filter((section) => section.hunks.length > 0);
  const [section] = changed;
  if (section === undefined) {
    throw new ToolError("Cannot read the patch: it holds no @@ -line,count +line,count @@ hunk");
  }
  if (changed.length > 1) throw refused(`it changes ${changed.length} files; give one at a time`);
  return section;
}

const isFileHeader = (lines: readonly string[], at: number) =>
  /^--- /.test(lines[at] ?? "") && /^\+\+\+ /.test(lines[at + 1] ?? "");

/** The name of the new file, without a date behind it and git's `a/` and `b/`. */
function namedBy(old: string, fresh: string): string {
  const [from, to] = [old, fresh].map((line) => (line.slice(4).split("\t")[0] ?? "").trim());
  if (from === "/dev/null") throw refused(MARKS.add);
  if (to === "/dev/null") throw refused(MARKS.delete);
  return (to ?? "").replace(/^[ab]\//, "");
}

function refused(reason: string): ToolError {
  return new ToolError(`Cannot apply the patch: ${reason}`);
}

/** The lines below a header. Its counts decide only where what follows could be either: they are often wrong. */
function readHunk(lines: readonly string[], start: number): { hunk: Hunk; next: number } {
  const header = lines[start] ?? "";
  const numbers = numbered.exec(header);
  const [, line, oldCount = "1", , newCount = "1"] = numbers ?? [];
  const body: HunkLine[] = [];
  const counts = { " ": 0, "-": 0, "+": 0 };
  const sizes = () => ({ old: counts[" "] + counts["-"], fresh: counts[" "] + counts["+"] });
  const isComplete = () => numbers !== null && sizes().old >= Number(oldCount) && sizes().fresh >= Number(newCount);
  let at = start + 1;
  let blankTail = 0;
  for (; at < lines.length; at++) {
    const text = lines[at] ?? "";
    if (endsHunk(lines, at, { isComplete: isComplete(), hasCounts: numbers !== null })) break;
    const last = body.at(-1);
    if (text.startsWith("\\ ") && last !== undefined) {
      last.noNewline = true;
      continue;
    }
    const kind = text === "" ? " " : text[0];
    if (kind !== " " && kind !== "-" && kind !== "+") {
      if (isComplete()) break;
      throw new ToolError(
        `Cannot read the patch: its line ${at + 1} (${JSON.stringify(text.slice(0, 80))}) begins with none of blank, - and +`,
      );
    }
    // Editors and models drop the blank of an empty line.
    blankTail = text === "" ? blankTail + 1 : 0;
    counts[kind]++;
    body.push({ kind, text: text.slice(1) });
  }
  const isExact = sizes().old === Number(oldCount) && sizes().fresh === Number(newCount);
  if (!isExact) body.splice(body.length - blankTail, blankTail);
  const anchor = header.replace(/^@@|@@$/g, "").trim();
  const hunk: Hunk = {
    name: numbers === null ? header : `@@ -${line},${oldCount} @@`,
    stated: numbers === null ? undefined : { line: Number(line), count: Number(oldCount) },
    anchor: numbers === null && /\w/.test(anchor) ? anchor : undefined,
    lines: body,
  };
  return { hunk, next: at };
}

function endsHunk(lines: readonly string[], at: number, state: { isComplete: boolean; hasCounts: boolean }): boolean {
  const line = lines[at] ?? "";
  if (/^(?:@@(?: |$)|diff --git |\*\*\* |```)/.test(line)) return true;
  if (state.isComplete && /^-- ?$/.test(line)) return true;
  return isFileHeader(lines, at) && (state.isComplete || !state.hasCounts);
}
