// Arguments of templates. Pure functions.

/** Splits at white space; quotes group and are dropped, there are no escapes, an open quote runs to the end. */
export function splitArguments(text: string): string[] {
  const words: string[] = [];
  let word: string | undefined;
  let quote: string | undefined;
  for (const char of text) {
    if (quote !== undefined) {
      if (char === quote) quote = undefined;
      else word += char;
    } else if (char === '"' || char === "'") {
      quote = char;
      word ??= "";
    } else if (/\s/.test(char)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else word = (word ?? "") + char;
  }
  if (word !== undefined) words.push(word);
  return words;
}

const PLACEHOLDER = /\$\{@:(\d+)(?::(\d+))?\}|\$@\[(\d+)(?::(\d+))?\]|\$ARGUMENTS\b|\$@|\$([1-9]\d*)/g;

/**
 * Fills `$1`, `$@`, `$ARGUMENTS`, `${@:N}`, `${@:N:L}` (also `$@[N]`, `$@[N:L]`), counted from 1, in a single pass: what an
 * argument contains is never a placeholder. Missing ones become empty. A template without placeholders gets the text appended.
 */
export function fillTemplate(template: string, args: string): string {
  const words = splitArguments(args);
  let used = false;
  const filled = template.replace(PLACEHOLDER, (_whole, from, length, bracketFrom, bracketLength, position) => {
    used = true;
    if (position !== undefined) return words[Number(position) - 1] ?? "";
    const start: string | undefined = from ?? bracketFrom;
    if (start === undefined) return words.join(" ");
    const first = Math.max(Number(start), 1) - 1;
    const count: string | undefined = length ?? bracketLength;
    return words.slice(first, count === undefined ? undefined : first + Number(count)).join(" ");
  });
  if (used || args === "") return filled;
  return `${filled.trimEnd()}\n\n${args}`;
}
