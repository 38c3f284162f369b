// Finding the text an edit names, and replacing no more than what differs. Texts are compared in a normalised form that
// remembers where each unit came from, so that a tolerant match still touches only its own span.

/** `exact` ignores CR before LF only; `typography` also quotes, dashes, odd spaces, width and blanks at line ends; `spacing` also how much blank there is. */
export type Tolerance = "exact" | "typography" | "spacing";
export const TOLERANCES: readonly Tolerance[] = ["exact", "typography", "spacing"];

interface Normal {
  readonly text: string;
  /** Where the unit at an index starts and ends in the source. */
  start(index: number): number;
  end(index: number): number;
}

/** Half-open range in the source. */
export interface Span {
  start: number;
  end: number;
}

export interface Replacement extends Span {
  text: string;
}

/** All places where `wanted` stands, not overlapping; the strictest tolerance that finds any decides. */
export function findText(source: string, wanted: string): { tolerance: Tolerance; spans: Span[] } | undefined {
  for (const tolerance of TOLERANCES) {
    const needle = normalise(wanted, tolerance).text;
    if (needle.trim() === "" && tolerance !== "exact") return undefined;
    const hay = normalise(source, tolerance);
    const spans: Span[] = [];
    for (let at = hay.text.indexOf(needle); at >= 0; ) {
      const whole = isBoundary(hay, at) && isBoundary(hay, at + needle.length);
      if (whole) spans.push({ start: hay.start(at), end: hay.end(at + needle.length - 1) });
      at = hay.text.indexOf(needle, whole ? at + needle.length : at + 1);
    }
    if (spans.length > 0) return { tolerance, spans };
  }
  return undefined;
}

/** The smallest replacement: what old and new text have in common at both ends stays as it stands in the file. */
export function replacementFor(
  source: string,
  match: { span: Span; tolerance: Tolerance },
  texts: { oldText: string; newText: string },
): Replacement {
  const { span, tolerance } = match;
  const found = source.slice(span.start, span.end);
  // Both as the file would have them, or a part of an indentation would count as common.
  const given = toLf(texts.oldText);
  const indented = (text: string) => (tolerance === "spacing" ? withIndentOf(found, given, text) : text);
  const old = indented(given);
  const wanted = indented(toLf(texts.newText));
  const newline = newlineFor(source, span);
  const limit = Math.min(old.length, wanted.length);
  let head = 0;
  while (head < limit && old[head] === wanted[head]) head++;
  let tail = 0;
  while (tail < limit - head && old[old.length - 1 - tail] === wanted[wanted.length - 1 - tail]) tail++;
  const places = align(found, old, tolerance);
  while (head > 0 && places(head) === undefined) head--;
  while (tail > 0 && places(old.length - tail) === undefined) tail--;
  const from = places(head) ?? 0;
  const to = tail === 0 ? found.length : (places(old.length - tail) ?? found.length);
  if (to < from) return { ...span, text: wanted.replaceAll("\n", newline) };
  const text = wanted.slice(head, wanted.length - tail).replaceAll("\n", newline);
  return { start: span.start + from, end: span.start + to, text };
}

/** A text with replacements made, which stand in order and do not overlap. */
export function replaceAll(source: string, replacements: readonly Replacement[]): string {
  const pieces: string[] = [];
  let at = 0;
  for (const { start, end, text } of replacements) {
    pieces.push(source.slice(at, start), text);
    at = end;
  }
  return [...pieces, source.slice(at)].join("");
}

/** Line number, from 1, of an offset. */
export function lineAt(source: string, offset: number): number {
  let line = 1;
  for (let at = source.indexOf("\n"); at >= 0 && at < offset; at = source.indexOf("\n", at + 1)) line++;
  return line;
}

export function toLf(text: string): string {
  return text.replaceAll("\r\n", "\n");
}

/** Offset in `old` → offset in `found`, or undefined where a unit of the one stands inside a unit of the other. */
function align(found: string, old: string, tolerance: Tolerance): (offset: number) => number | undefined {
  const there = normalise(found, tolerance);
  const here = normalise(old, tolerance);
  return (offset) => {
    if (offset === 0) return 0;
    if (offset === old.length) return found.length;
    let low = 0;
    let high = here.text.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (here.start(middle) < offset) low = middle + 1;
      else high = middle;
    }
    if (low === here.text.length) return undefined;
    return here.start(low) === offset && isBoundary(here, low) && isBoundary(there, low) ? there.start(low) : undefined;
  };
}

/** The line end of the span's first line break, else of the line before or after it. */
function newlineFor(source: string, span: Span): "\n" | "\r\n" {
  let at = source.indexOf("\n", span.start);
  if (at < 0) at = source.lastIndexOf("\n", span.start - 1);
  return at > 0 && source[at - 1] === "\r" ? "\r\n" : "\n";
}

/** Gives lines of the new text the indentation the file has where the old text has another, deeper lines more of the same kind. */
export function withIndentOf(found: string, old: string, wanted: string): string {
  const indents = new Map<string, string>();
  const foundLines = toLf(found).split("\n");
  old.split("\n").forEach((line, index) => {
    const other = foundLines[index];
    if (line.trim() !== "" && other !== undefined && !indents.has(indentOf(line))) indents.set(indentOf(line), indentOf(other));
  });
  const known = [...indents].sort(([a], [b]) => b.length - a.length);
  const deeper = deepening(known);
  return wanted
    .split("\n")
    .map((line) => {
      const indent = indentOf(line);
      const [from, to] = known.find(([start]) => indent.startsWith(start)) ?? [];
      if (line.trim() === "" || from === undefined || to === undefined) return line;
      return to + deeper(indent.slice(from.length)) + line.slice(indent.length);
    })
    .join("\n");
}

/** What more indentation becomes, judged by how that of known lines relates; what cannot be told stays. */
function deepening(known: readonly (readonly [string, string])[]): (rest: string) => string {
  const isPlain = (text: string) => /^(?: *|\t*)$/.test(text);
  const plain = known.filter(([from, to]) => isPlain(from) && isPlain(to));
  const [from, to] = plain[0] ?? ["", ""];
  const [nearFrom, nearTo] = plain.length > 1 ? (plain.at(-1) ?? ["", ""]) : ["", ""];
  // One level of blanks may stand for more or fewer of them, or just be moved: only a change of the character is plain.
  const isTold = plain.length > 1 || from[0] !== to[0];
  const ratio = (to.length - nearTo.length) / (from.length - nearFrom.length);
  return (rest) => {
    const size = rest.length * ratio;
    return isTold && size > 0 && Number.isInteger(size) && isPlain(rest) && rest[0] === from[0]
      ? (to[0] ?? "").repeat(size)
      : rest;
  };
}

const indentOf = (line: string) => /^[ \t]*/.exec(line)?.[0] ?? "";

function isBoundary(normal: Normal, index: number): boolean {
  return index === 0 || index >= normal.text.length || normal.start(index) !== normal.start(index - 1);
}

/** A line, without its end, in the form in which lines are compared. */
export function normalLine(line: string, tolerance: Tolerance): string {
  return tolerance === "exact" ? line : normalise(`${line}\n`, tolerance).text.slice(0, -1);
}

function normalise(source: string, tolerance: Tolerance): Normal {
  if (tolerance === "exact" && !source.includes("\r\n"))
    return { text: source, start: (index) => index, end: (index) => index + 1 };
  const units: string[] = [];
  const starts: number[] = [];
  const ends: number[] = [];
  const add = (text: string, start: number, end: number) => {
    for (let index = 0; index < text.length; index++) {
      starts.push(start);
      ends.push(end);
    }
    units.push(text);
  };
  let at = 0;
  while (at < source.length) {
    const code = source.codePointAt(at) ?? 0;
    const size = code > 0xffff ? 2 : 1;
    if (code === 13 && source.charCodeAt(at + 1) === 10) {
      add("\n", at, at + 2);
      at += 2;
    } else if (tolerance !== "exact" && isBlank(code)) {
      at = addBlanks(source, at, tolerance, add);
    } else {
      const character = source.slice(at, at + size);
      add(tolerance === "exact" || code < 128 ? character : plain(character), at, at + size);
      at += size;
    }
  }
  return { text: units.join(""), start: (index) => starts[index] ?? source.length, end: (index) => ends[index] ?? source.length };
}

/** A run of blanks: nothing before a line break, else one space each, or one for all. Returns where it ends. */
function addBlanks(
  source: string,
  at: number,
  tolerance: Tolerance,
  add: (text: string, start: number, end: number) => void,
): number {
  let end = at;
  while (end < source.length && isBlank(source.charCodeAt(end))) end++;
  const next = source[end];
  if (next === "\n" || (next === "\r" && source[end + 1] === "\n")) return end;
  if (tolerance === "spacing") add(" ", at, end);
  else for (let index = at; index < end; index++) add(source[index] === "\t" ? "\t" : " ", index, index + 1);
  return end;
}

/** Space, tab, and the spaces of typography. */
function isBlank(code: number): boolean {
  return (
    code === 32 ||
    code === 9 ||
    code === 0xa0 ||
    (code >= 0x2000 && code <= 0x200a) ||
    code === 0x202f ||
    code === 0x205f ||
    code === 0x3000
  );
}

const typographic = new Map<string, string>([
  ...[..."\u2018\u2019\u201a\u201b\u2032\u02bc"].map((quote) => [quote, "'"] as const),
  ...[..."\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb"].map((quote) => [quote, '"'] as const),
  ...[..."\u2010\u2011\u2012\u2013\u2014\u2015\u2212"].map((dash) => [dash, "-"] as const),
]);

function plain(character: string): string {
  return typographic.get(character) ?? character.normalize("NFKC");
}
