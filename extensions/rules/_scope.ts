// Which parts of an answer a rule watches: `text`, `thinking`, `tool`, `tool:edit`, `tool:edit(*.ts, *.tsx)`.
import { basename, isAbsolute, relative } from "node:path";

export interface RuleScope {
  readonly kind: "text" | "thinking" | "tool";
  /** Only calls of this tool. */
  readonly tool: string | undefined;
  /** Only calls about such a file; undefined for any call. */
  readonly fits: ((path: string, cwd: string) => boolean) | undefined;
}

/**
 * Without a scope a rule watches text and tool calls; with globs and no scope only tool calls, because text has no file.
 * What names no part is told and left out.
 */
export async function scopesOf(
  words: readonly string[],
  globs: readonly string[],
  complain: (what: string) => void,
): Promise<RuleScope[]> {
  const wanted = words.length > 0 ? words : globs.length > 0 ? ["tool"] : ["text", "tool"];
  const general = await matcherOf(globs);
  const scopes: RuleScope[] = [];
  for (const word of wanted) {
    const [, kind, tool, inner] = /^(text|thinking|tool)(?::([^\s()]+))?(?:\(([^)]*)\))?$/i.exec(word) ?? [];
    const isTool = kind?.toLowerCase() === "tool";
    if (kind === undefined || (!isTool && (tool !== undefined || inner !== undefined))) {
      complain(`scope "${word}" is left out, it must be text, thinking, tool, tool:<name> or tool:<name>(<globs>)`);
      continue;
    }
    if (!isTool) {
      scopes.push({ kind: kind.toLowerCase() === "text" ? "text" : "thinking", tool: undefined, fits: undefined });
      continue;
    }
    const own = await matcherOf((inner ?? "").split(",").flatMap((glob) => (glob.trim() === "" ? [] : [glob.trim()])));
    const both = general && own && ((path: string, cwd: string) => general(path, cwd) && own(path, cwd));
    scopes.push({ kind: "tool", tool: tool === "*" ? undefined : tool, fits: both ?? own ?? general });
  }
  return scopes;
}

/** Without a slash the last name decides, else the path from the working directory on. */
async function matcherOf(globs: readonly string[]): Promise<RuleScope["fits"]> {
  if (globs.length === 0) return undefined;
  const { default: picomatch } = await import("picomatch");
  const tests = globs.map((glob) => {
    const test = picomatch(glob.replace(/^\.\//, ""), { dot: true });
    return { test, byName: !glob.includes("/"), absolute: isAbsolute(glob) };
  });
  return (path, cwd) =>
    tests.some(({ test, byName, absolute }) => {
      if (byName) return test(basename(path));
      if (absolute) return test(path);
      return test(isAbsolute(path) ? relative(cwd, path) : path.replace(/^\.\//, ""));
    });
}
