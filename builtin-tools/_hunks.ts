// Finding the place of every hunk of a patch and making its changes there. The lines decide; the numbers only choose between
// places that fit.
import { ToolError } from "mortise/extension";
import {
  normalLine,
  type Replacement,
  replaceAll,
  replacementFor,
  TOLERANCES,
  type Tolerance,
  toLf,
  withIndentOf,
} from "./_match.ts";
import type { Hunk, HunkLine } from "./_patch.ts";

export interface Applied {
  text: string;
  /** The loosest one that was needed. */
  tolerance: Tolerance;
}

/** @throws {ToolError} when a hunk fits nowhere, or in several places that its numbers do not tell apart */
export function applyHunks(source: string, hunks: readonly Hunk[], shown: string): Applied {
  const lines = new Lines(source);
  const replacements: Replacement[] = [];
  let loosest: Tolerance = "exact";
  let from = 0;
  /** How far the hunk before stood from where it said. */
  let shift = 0;
  let newline: boolean | undefined;
  hunks.forEach((hunk, index) => {
    const label = `hunk ${index + 1} (${hunk.name})`;
    const fail = (reason: string) => new ToolError(`Cannot apply the patch to ${shown}: ${label} ${reason}`);
    const place = locate(lines, hunk, { from, shift, fail });
    if (TOLERANCES.indexOf(place.tolerance) > TOLERANCES.indexOf(loosest)) loosest = place.tolerance;
    replacements.push(...changesOf(lines, hunk, place));
    from = place.line + oldLines(hunk).length;
    if (hunk.stated !== undefined) shift = place.line - (hunk.stated.line - 1);
    if (from === lines.count) newline = finalNewline(hunk);
  });
  const text = replaceAll(source, replacements);
  if (newline === false) return { text: text.replace(/\r?\n$/, ""), tolerance: loosest };
  return { text: newline ? `${text}${lines.newlineAt(lines.count)}` : text, tolerance: loosest };
}

interface Place {
  /** Index of the first line. */
  line: number;
  tolerance: Tolerance;
}

interface Search {
  from: number;
  shift: number;
  fail(reason: string): ToolError;
}

const oldLines = (hunk: Hunk) => hunk.lines.filter(({ kind }) => kind !== "+").map(({ text }) => text);

function locate(lines: Lines, hunk: Hunk, search: Search): Place {
  const wanted = oldLines(hunk);
  const { stated } = hunk;
  if (wanted.length === 0) {
    if (lines.count === 0) return { line: 0, tolerance: "exact" };
    // Of a hunk that only adds, the number is that of the line before.
    if (stated?.count === 0 && stated.line <= lines.count && stated.line >= search.from) {
      return { line: stated.line, tolerance: "exact" };
    }
    throw search.fail("has no line of the file in it; give some lines around the place");
  }
  for (const tolerance of TOLERANCES) {
    const fits = lines.find(wanted, tolerance, search.from);
    if (fits.length === 0) continue;
    const line = choose(fits, lines, hunk, search);
    if (line !== undefined) return { line, tolerance };
    const numbers = fits.slice(0, 10).map((index) => index + 1);
    const more = fits.length > 10 ? ", …" : "";
    const none = stated === undefined ? "" : `, none of them ${stated.line}`;
    throw search.fail(
      `fits in ${fits.length} places (from line ${numbers.join(", ")}${more}${none}); give more lines around it, or the right line number`,
    );
  }
  throw search.fail(`does not match the file; ${lines.difference(wanted, hunk)}`);
}

/** The place that is meant, or undefined when that is open. */
function choose(fits: readonly number[], lines: Lines, hunk: Hunk, { from, shift }: Search): number | undefined {
  if (fits.length === 1) return fits[0];
  if (hunk.stated !== undefined) {
    const said = hunk.stated.line - 1;
    return [said + shift, said].find((line) => fits.includes(line));
  }
  const anchor = hunk.anchor === undefined ? -1 : lines.indexOf(hunk.anchor, from);
  return anchor < 0 ? undefined : fits.find((line) => line > anchor);
}

/** One replacement for each run of changed lines; lines that stay are not touched. */
function changesOf(lines: Lines, hunk: Hunk, { line, tolerance }: Place): Replacement[] {
  const found: Replacement[] = [];
  const wanted = oldLines(hunk);
  const whole = lines.text(line, line + wanted.length);
  let at = line;
  for (let index = 0; index < hunk.lines.length; ) {
    const removed = run(hunk.lines, index, "-");
    const added = run(hunk.lines, index + removed.length, "+");
    if (removed.length + added.length === 0) {
      index++;
      at++;
      continue;
    }
    index += removed.length + added.length;
    if (removed.length > 0 && added.length > 0) {
      const span = { start: lines.start(at), end: lines.end(at + removed.length - 1) };
      found.push(replacementFor(lines.source, { span, tolerance }, { oldText: removed.join("\n"), newText: added.join("\n") }));
    } else if (removed.length > 0) {
      found.push({ start: lines.start(at), end: lines.start(at + removed.length), text: "" });
    } else {
      const text = added.join("\n");
      found.push(lines.insertion(at, tolerance === "spacing" ? withIndentOf(whole, wanted.join("\n"), text) : text));
    }
    at += removed.length;
  }
  return found;
}

function run(lines: readonly HunkLine[], from: number, kind: "-" | "+"): string[] {
  let to = from;
  while (lines[to]?.kind === kind) to++;
  return lines.slice(from, to).map(({ text }) => text);
}

/** True when a hunk at the end gives the file the final newline it lacks, false when it takes it away. */
function finalNewline({ lines }: Hunk): boolean | undefined {
  if (lines.findLast(({ kind }) => kind !== "-")?.noNewline) return false;
  // What stands before lines that only go has its newline.
  if (lines.at(-1)?.kind === "-") return undefined;
  return lines.some(({ kind, noNewline }) => kind === "-" && noNewline) ? true : undefined;
}

/** The lines of a text, without and with their ends, compared at three tolerances. */
class Lines {
  readonly source: string;
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];
  readonly #normal = new Map<Tolerance, string[]>();

  constructor(source: string) {
    this.source = source;
    for (let at = 0; at < source.length; ) {
      const newline = source.indexOf("\n", at);
      this.#starts.push(at);
      const end = newline < 0 ? source.length : newline;
      this.#ends.push(newline > at && source[newline - 1] === "\r" ? end - 1 : end);
      at = newline < 0 ? source.length : newline + 1;
    }
  }

  get count(): number {
    return this.#starts.length;
  }

  /** Offset of a line; behind the last one that of the end. */
  start(line: number): number {
    return this.#starts[line] ?? this.source.length;
  }

  /** Where a line ends, its line end not counted. */
  end(line: number): number {
    return this.#ends[line] ?? this.source.length;
  }

  text(from: number, to: number): string {
    return to > from ? toLf(this.source.slice(this.start(from), this.end(to - 1))) : "";
  }

  /** Every line from `from` on at which all the wanted ones stand. */
  find(wanted: readonly string[], tolerance: Tolerance, from: number): number[] {
    const have = this.#at(tolerance);
    const needle = wanted.map((line) => normalLine(line, tolerance));
    const found: number[] = [];
    for (let line = from; line + needle.length <= have.length; line++) {
      if (needle.every((text, index) => have[line + index] === text)) found.push(line);
    }
    return found;
  }

  /** The first line with this text, blanks around it aside. */
  indexOf(text: string, from: number): number {
    const trimmed = this.#at("typography").map((line) => line.trim());
    return trimmed.indexOf(text.trim(), from);
  }

  /** New lines in front of a line. */
  insertion(line: number, text: string): Replacement {
    const newline = this.newlineAt(line);
    const at = this.start(line);
    const lines = text.replaceAll("\n", newline);
    const isOpen = line >= this.count && this.source !== "" && !this.source.endsWith("\n");
    return { start: at, end: at, text: isOpen ? `${newline}${lines}` : `${lines}${newline}` };
  }

  /** The line end that is usual at a line. */
  newlineAt(line: number): string {
    const before = this.#newlineOf(line - 1) ?? this.#newlineOf(line) ?? this.#newlineOf(line - 2);
    return before ?? "\n";
  }

  /** In words: where the wanted lines come closest, and what is different there. */
  difference(wanted: readonly string[], { stated }: Hunk): string {
    const have = this.#at("spacing");
    const needle = wanted.map((line) => normalLine(line, "spacing"));
    let best = { line: stated === undefined ? 0 : Math.min(Math.max(0, stated.line - 1), this.count - 1), same: 0 };
    for (let line = 0; line < have.length; line++) {
      let same = 0;
      while (same < needle.length && have[line + same] === needle[same]) same++;
      if (same > best.same) best = { line, same };
    }
    const line = best.line + best.same;
    if (line >= this.count) return "the file ends before; read it again";
    return `line ${line + 1} reads ${quoted(this.text(line, line + 1))} where it has ${quoted(wanted[best.same] ?? "")}`;
  }

  #newlineOf(line: number): string | undefined {
    if (line < 0 || line >= this.count) return undefined;
    return this.source.slice(this.end(line), this.start(line + 1)) || undefined;
  }

  #at(tolerance: Tolerance): string[] {
    const known = this.#normal.get(tolerance);
    if (known !== undefined) return known;
    const normal = this.#starts.map((start, line) => normalLine(this.source.slice(start, this.end(line)), tolerance));
    this.#normal.set(tolerance, normal);
    return normal;
  }
}

const quoted = (text: string) => JSON.stringify(text.length > 120 ? `${text.slice(0, 119)}…` : text);
