// Building HTML out of untrusted text. Markup comes from `html` templates of this folder only; every value is escaped.

/** Markup that is safe to place between tags. */
export class Html {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
  toString(): string {
    return this.text;
  }
}

type Value = Html | string | number | undefined | false | null | readonly (Html | string)[];

/** A template whose values are escaped unless they are `Html`; attributes must stand in double quotes. */
export function html(strings: TemplateStringsArray, ...values: Value[]): Html {
  let text = strings[0] ?? "";
  for (const [index, value] of values.entries()) text += valueText(value) + (strings[index + 1] ?? "");
  return new Html(text);
}

function valueText(value: Value): string {
  if (value === undefined || value === false || value === null) return "";
  if (value instanceof Html) return value.text;
  if (typeof value === "object") return value.map(valueText).join("");
  return escapeText(String(value));
}

export const nothing = new Html("");

const ENTITIES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;
const TERMINAL = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])/g;
/** Embeddings, overrides and isolates: with them a text reads otherwise than it is. Marks that only join or direct letters stay. */
const BIDI = /[\u202a-\u202e\u2066-\u2069]/g;

/** Terminal sequences are left out; other control characters, those that reorder text, and lone surrogates become visible. */
export function readable(text: string): string {
  return text
    .replace(TERMINAL, "")
    .replace(/\r\n?/g, "\n")
    .replace(CONTROLS, "\ufffd")
    .replace(BIDI, (char) => `[U+${char.charCodeAt(0).toString(16).toUpperCase()}]`)
    .toWellFormed();
}

/** Readable text, with its markup escaped. */
export function escapeText(text: string): string {
  return readable(text).replace(/[&<>"']/g, (char) => ENTITIES[char] ?? char);
}

/** JSON that can stand inside a script element: nothing in it can end the element or begin a comment. */
export function jsonForScript(value: unknown): Html {
  const json = JSON.stringify(value)
    .replace(/[<>&]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`)
    .replaceAll("\u2028", "\\u2028")
    .replaceAll("\u2029", "\\u2029");
  return new Html(json);
}
