// Formulas stay as they were written: to Markdown their backslashes, stars and underscores would be marks of its own. They are
// not set, because that takes fonts and a program larger than the page.
import type { TokenizerAndRendererExtension } from "marked";

/** How far a `$` is looked for in running text: the parser asks at every piece of it. */
const LOOK_AHEAD = 2000;
/** Bounded, because each may be tried at every place of a long text. */
const DISPLAY = /^(?:\$\$(?:\\[\s\S]|[^\\$]){1,4000}?\$\$|\\\[[\s\S]{1,1000}?\\\])/;
const INLINE = /^\\\([\s\S]{1,500}?\\\)/;
/** Not the prices of `$5 and $10`: no blank inside of either mark, no digit behind. */
const DOLLARS = /^\$(?![\s$])(?:\\.|[^\\$\n]){1,400}?(?<!\s)\$(?![\d$])/;
/** Not the variables of `$HOME:$PATH` either. */
const FORMULA = /[\\^{}=]|_./;

export const math: TokenizerAndRendererExtension[] = [
  {
    name: "math",
    level: "block",
    tokenizer(source) {
      const raw = DISPLAY.exec(source)?.[0];
      // What stands behind it on its line belongs to it no more than what stands before.
      return raw !== undefined && /^[ \t]*(?:\n|$)/.test(source.slice(raw.length, raw.length + 80))
        ? { type: "math", raw }
        : undefined;
    },
    renderer: ({ raw }) => raw,
  },
  {
    name: "math",
    level: "inline",
    start(source) {
      const at = source.slice(0, LOOK_AHEAD).indexOf("$");
      return at < 0 ? undefined : at;
    },
    tokenizer(source) {
      const raw = source.startsWith("$") || source.startsWith("\\") ? formula(source) : undefined;
      return raw === undefined ? undefined : { type: "math", raw };
    },
    renderer: ({ raw }) => raw,
  },
];

function formula(source: string): string | undefined {
  const marked = DISPLAY.exec(source)?.[0] ?? INLINE.exec(source)?.[0];
  if (marked !== undefined) return marked;
  const raw = DOLLARS.exec(source)?.[0];
  return raw !== undefined && FORMULA.test(raw) ? raw : undefined;
}
