// Short forms of texts and numbers for lines, titles and notes.
import type { InputContent } from "mortise/extension";

const LINE_CHARS = 100;
const MAX_OUTPUT_CHARS = 200_000;

/** Any value of a session as text: files of other programs hold what the types do not promise. */
export function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  return value === undefined || value === null ? "" : JSON.stringify(value);
}

export function oneLine(text: string): string {
  const line = text
    .slice(0, LINE_CHARS * 4)
    .replace(/\s+/g, " ")
    .trim();
  return line.length <= LINE_CHARS ? line : `${line.slice(0, LINE_CHARS - 1)}…`;
}

/** A line of Markdown without its most common marks. */
export function proseLine(text: string): string {
  return oneLine(text.slice(0, LINE_CHARS * 8).replace(/^\s*#{1,6}\s+|\*\*|`+/gm, ""));
}

export function inputText(content: string | readonly InputContent[]): string {
  return typeof content === "string"
    ? content
    : content.map((block) => (block.type === "text" ? block.text : "[image]")).join(" ");
}

export function clip(text: string): string {
  if (text.length <= MAX_OUTPUT_CHARS) return text;
  return `${text.slice(0, MAX_OUTPUT_CHARS)}\n[… ${count(text.length - MAX_OUTPUT_CHARS)} more characters: see the JSONL]`;
}

export function count(value: number): string {
  return Math.round(value).toLocaleString("en-US");
}

export function dollars(value: number): string {
  return `$${value.toFixed(value < 0.1 ? 4 : 2)}`;
}
