// Globs as `find` takes them.
import { ToolError } from "mortise/extension";
import { argument } from "./_rg.ts";

/** More wildcards in one name make a regular expression take for ever on some names. */
const MAX_STARS = 4;

/** Matches a path relative to the directory. Without a slash in the pattern the last name decides. */
export async function matcher(pattern: string): Promise<(path: string) => boolean> {
  const glob = argument(pattern, "pattern")
    .replace(/^(?:\.?\/)+/, "")
    .replace(/\/+$/, "")
    // Plain characters of names (`c++`, `app/(auth)/page.tsx`), not of regular expressions.
    .replace(/\\.|[+$()|]/g, (text) => (text.length > 1 ? text : `\\${text}`));
  for (const segment of glob.split("/")) {
    if ((segment.replaceAll("**", "*").match(/\*/g)?.length ?? 0) > MAX_STARS) {
      throw new ToolError(`Cannot search for "${pattern}": at most ${MAX_STARS} * in one name are possible`);
    }
  }
  if (glob === "") return () => true;
  const { default: picomatch } = await import("picomatch");
  try {
    const expression = picomatch.makeRe(glob, { dot: true, noextglob: true, nonegate: true });
    return glob.includes("/")
      ? (path) => expression.test(path)
      : (path) => expression.test(path.slice(path.lastIndexOf("/") + 1));
  } catch (error) {
    throw new ToolError(`Cannot search for "${pattern}": it is not a valid glob`, { cause: error });
  }
}

/** The longest text that stands in every path the pattern matches, if there is one: a search for it is far cheaper than the pattern. */
export function literalOf(pattern: string): Buffer | undefined {
  const plain = pattern.replace(/\[[^\][\\^]+\]|\{[^{}\\]*\}/g, "*");
  // What the rest of the syntax means is left to the pattern.
  if (/[[\]{}()\\|"^]|\*{3}/.test(plain)) return undefined;
  const longest = plain.split(/[*?/]+/).reduce((best, part) => (part.length > best.length ? part : best), "");
  return /[^.]/.test(longest) ? Buffer.from(longest) : undefined;
}
