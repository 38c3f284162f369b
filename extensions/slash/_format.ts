// Numbers and lists for people.

/** 1234567 → "1,234,567". */
export function count(value: number): string {
  return Math.round(value).toLocaleString("en-US");
}

/** US dollars with as many places as small amounts need. */
export function dollars(value: number): string {
  return `$${value.toFixed(value > 0 && value < 1 ? 4 : 2)}`;
}

/** Lines "name   text" with the texts in one column. */
export function columns(rows: readonly (readonly [string, string])[]): string {
  const width = Math.min(32, Math.max(0, ...rows.map(([name]) => name.length)));
  return rows.map(([name, text]) => (text === "" ? name : `${name.padEnd(width)}  ${text}`)).join("\n");
}

export function oneLine(text: string, maxChars = 100): string {
  const line = text.replace(/\s+/g, " ").trim();
  const chars = [...line];
  return chars.length > maxChars ? `${chars.slice(0, maxChars - 1).join("")}…` : line;
}

/** A value of a setting as YAML flow text, shortened. */
export function inspect(value: unknown): string {
  return oneLine(value === undefined ? "not set" : JSON.stringify(value), 120);
}
