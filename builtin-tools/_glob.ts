// Globs as `find` takes them.
import { stat } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { ToolError } from "mortise/extension";
import { argument } from "./_rg.ts";

/** More wildcards in one name make a regular expression take for ever on some names. */
const MAX_STARS = 4;

/**
 * A pattern that starts at the root, at home or above the directory, as one below the directory.
 *
 * @throws {ToolError} when it names another directory; searching there would be news to whoever judges the call by its path
 */
export async function patternBelow(pattern: string, directory: string): Promise<string> {
  if (!/^(?:~?\/|\.\.\/)/.test(pattern)) return pattern;
  const home = pattern.startsWith("~/") ? join(homedir(), pattern.slice(2)) : undefined;
  const absolute = home ?? (pattern.startsWith("/") ? pattern : join(directory, pattern));
  if (absolute.startsWith(`${directory}/`)) return absolute.slice(directory.length + 1);
  const names = absolute.split("/");
  const wild = names.findIndex((name) => /[*?[{]/.test(name));
  const depth = wild < 0 ? names.length - 1 : wild;
  const folder = names.slice(0, depth).join("/");
  // A leading slash may also stand for the directory itself.
  if (folder === "" || !(await stat(folder).catch(() => undefined))?.isDirectory()) return pattern;
  const rest = names.slice(depth).join("/");
  throw new ToolError(`Cannot search for "${pattern}" below ${directory}: give "${folder}" as path and "${rest}" as pattern`);
}

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
