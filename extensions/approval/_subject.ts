// What a rule's pattern is compared with: the command of bash, the paths of file tools, the URL of a read, else a text.
import { readlink, realpath } from "node:fs/promises";
import { homedir } from "node:os";
import { basename, dirname, isAbsolute, join, relative, resolve } from "node:path";
import picomatch from "picomatch";

interface NamedPath {
  /** As the call names it, made absolute. */
  readonly absolute: string;
  /** With symbolic links followed. */
  readonly real: string;
}

export type Subject =
  | { readonly kind: "command"; readonly command: string }
  | { readonly kind: "paths"; readonly paths: readonly NamedPath[] }
  | { readonly kind: "url"; readonly url: string }
  | { readonly kind: "text"; readonly text: string };

/** Tools whose `path` may be left out: they look at the working directory then. */
const SEARCHES = new Set(["grep", "find", "ls"]);

export async function subjectOf(toolName: string, args: Readonly<Record<string, unknown>>, cwd: string): Promise<Subject> {
  const text = (name: string) => (typeof args[name] === "string" ? args[name] : undefined);
  const command = text("command");
  if (command !== undefined) return { kind: "command", command };
  const path = text("path") ?? (SEARCHES.has(toolName) ? "." : undefined);
  const patch = text("patch");
  if (path !== undefined && /^[a-z][a-z0-9+.-]+:\/\//i.test(path) && !/^file:/i.test(path)) return { kind: "url", url: path };
  if (path !== undefined || patch !== undefined) {
    const names = [...(path === undefined ? [] : [path, withoutSelector(path)]), ...(patch === undefined ? [] : filesOf(patch))];
    return { kind: "paths", paths: await Promise.all([...new Set(names)].map((name) => named(name, cwd))) };
  }
  const url = text("url");
  if (url !== undefined) return { kind: "url", url };
  return { kind: "text", text: text("query") ?? JSON.stringify(args) };
}

/** `read` takes `file:10-20`; which of both exists decides there, so both count here. */
const withoutSelector = (path: string) => path.replace(/:(?:raw|\d[\d,+-]*)(?::raw)?$/, "");

function filesOf(patch: string): string[] {
  const names = [...patch.matchAll(/^(?:---|\+\+\+|\*\*\* \w+ File:) ([^\t\n]+)/gm)].map((match) => (match[1] ?? "").trim());
  return names.filter((name) => name !== "/dev/null").flatMap((name) => [name.replace(/^[ab]\//, "")]);
}

async function named(argument: string, cwd: string): Promise<NamedPath> {
  let path = argument.replace(/^@/, "");
  if (/^file:\/\//i.test(path) && URL.canParse(path)) path = decodeURIComponent(new URL(path).pathname);
  if (path === "~" || path.startsWith("~/")) path = join(homedir(), path.slice(1));
  const absolute = resolve(cwd, path.replaceAll("\0", ""));
  return { absolute, real: await realPathOf(absolute) };
}

/** Also of a file that does not exist yet, and of a link that leads nowhere. */
async function realPathOf(path: string, depth = 0): Promise<string> {
  try {
    return await realpath(path);
  } catch {
    if (dirname(path) === path || depth > 40) return path;
  }
  const parent = await realPathOf(dirname(path), depth + 1);
  const target = await readlink(join(parent, basename(path))).catch(() => undefined);
  return target === undefined ? join(parent, basename(path)) : realPathOf(resolve(parent, target), depth + 1);
}

/** True for paths in a directory, itself included. */
function isInside(directory: string, path: string): boolean {
  const inside = relative(directory, path);
  return inside === "" || (inside !== ".." && !inside.startsWith("../") && !isAbsolute(inside));
}

/** Inside the project, but not where a file becomes code that runs unasked. */
export function isOrdinary(cwd: string, path: string): boolean {
  return (
    isInside(cwd, path) &&
    !path
      .slice(cwd.length)
      .split("/")
      .some((name) => name === ".git" || name === ".mortise")
  );
}

/**
 * A glob against a path. Without a slash the last name decides; `/…`, `~/…` and `../…` are places in the file system, anything else is one
 * below `cwd`.
 */
export function matchesPath(pattern: string, path: string, cwd: string): boolean {
  const options = { dot: true, noextglob: true, nonegate: true };
  const matches = (glob: string, text: string) => picomatch(glob, options)(text);
  if (!pattern.includes("/")) return matches(pattern, basename(path));
  if (pattern.startsWith("~/")) return matches(join(homedir(), pattern.slice(2)), path);
  if (pattern.startsWith("/") || pattern.startsWith("../")) return matches(resolve(cwd, pattern), path);
  return isInside(cwd, path) && matches(pattern.replace(/^(?:\.\/)+/, ""), relative(cwd, path));
}
