// Widths of text in a terminal, for extensions that lay text out: escape sequences take no room, wide characters take two.

// CSI, OSC (ended by BEL or ST), and APC sequences.
const ESCAPES = /\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|_[^\x07\x1b]*(?:\x07|\x1b\\))/g;
const segmenter = new Intl.Segmenter(undefined, { granularity: "grapheme" });
// East Asian wide and fullwidth blocks, and emoji shown as pictures.
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}|\ufe0f/u;
const INVISIBLE = /^[\p{Cc}\p{Mn}\p{Me}\p{Cf}]+$/u;

/** Columns the text takes; tabs count as three, as in pi. */
export function visibleWidth(text: string): number {
  const plain = text.replace(ESCAPES, "").replaceAll("\t", "   ");
  if (/^[\x20-\x7e]*$/.test(plain)) return plain.length;
  let width = 0;
  for (const { segment } of segmenter.segment(plain)) width += graphemeWidth(segment);
  return width;
}

export function stripTerminalSequences(text: string): string {
  return text.replace(ESCAPES, "");
}

/** The part between two columns; escape sequences are left out. */
export function sliceByColumn(text: string, from: number, length: number): string {
  let at = 0;
  let slice = "";
  for (const piece of graphemes(stripTerminalSequences(text))) {
    if (at >= from && at + piece.width <= from + length) slice += piece.text;
    at += piece.width;
  }
  return slice;
}

function graphemeWidth(grapheme: string): number {
  if (INVISIBLE.test(grapheme)) return 0;
  return WIDE.test(grapheme) ? 2 : 1;
}

/** Cuts to a width and ends with `ellipsis` when something was cut; escape sequences stay, styles are reset behind the cut. */
export function truncateToWidth(text: string, maxWidth: number, ellipsis = "…", pad = false): string {
  const width = visibleWidth(text);
  if (width <= maxWidth) return pad ? text + " ".repeat(maxWidth - width) : text;
  const room = maxWidth - visibleWidth(ellipsis);
  if (room < 0) return take(ellipsis, maxWidth).text;
  const taken = take(text, room);
  const cut = `${taken.text}${text.includes("\x1b[") ? "\x1b[0m" : ""}${ellipsis}`;
  return pad ? cut + " ".repeat(Math.max(0, maxWidth - visibleWidth(cut))) : cut;
}

/** The longest beginning that fits. */
function take(text: string, maxWidth: number): { text: string; rest: string } {
  let width = 0;
  let end = 0;
  for (const piece of pieces(text)) {
    const next = width + piece.width;
    if (next > maxWidth) break;
    width = next;
    end += piece.text.length;
  }
  return { text: text.slice(0, end), rest: text.slice(end) };
}

function* pieces(text: string): Generator<{ text: string; width: number }> {
  let at = 0;
  for (const match of text.matchAll(ESCAPES)) {
    yield* graphemes(text.slice(at, match.index));
    yield { text: match[0], width: 0 };
    at = match.index + match[0].length;
  }
  yield* graphemes(text.slice(at));
}

function* graphemes(text: string): Generator<{ text: string; width: number }> {
  for (const { segment } of segmenter.segment(text)) {
    yield { text: segment, width: segment === "\t" ? 3 : graphemeWidth(segment) };
  }
}

/** Breaks at spaces, inside words only where one is wider than a line; a style that is open goes on in the next line. */
export function wrapTextWithAnsi(text: string, width: number): string[] {
  const lines: string[] = [];
  let style = "";
  for (const paragraph of text.split("\n")) {
    for (const line of wrapParagraph(paragraph, Math.max(1, width))) {
      lines.push(style + line);
      style = styleAfter(style, line);
    }
  }
  return lines;
}

function wrapParagraph(paragraph: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of paragraph.split(/(?<= )(?=[^ ])/)) {
    if (visibleWidth((line + word).trimEnd()) <= width) {
      line += word;
      continue;
    }
    if (line !== "") lines.push(line.trimEnd());
    line = word;
    while (visibleWidth(line.trimEnd()) > width) {
      const { text, rest } = take(line, width);
      if (text === "") break;
      lines.push(text);
      line = rest;
    }
  }
  lines.push(line.trimEnd());
  return lines;
}

function styleAfter(before: string, line: string): string {
  let style = before;
  for (const [sequence] of line.matchAll(/\x1b\[[0-9;:]*m/g)) {
    style = sequence === "\x1b[0m" || sequence === "\x1b[m" ? "" : style + sequence;
  }
  return style;
}
