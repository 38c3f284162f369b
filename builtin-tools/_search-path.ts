// Where grep, find and ls look.
import { constants, type Stats } from "node:fs";
import { access } from "node:fs/promises";
import { type ToolContext, ToolError, Uris } from "mortise/extension";
import { statPath, toolError } from "./_open.ts";
import { resolvePath, shownPath } from "./_path.ts";

/** @throws {ToolError} for URLs, which have no folders to search, and for paths that do not exist */
export async function searchPath(
  ctx: ToolContext,
  argument: string,
  tool: string,
): Promise<{ path: string; shown: string; stats: Stats }> {
  const scheme = ctx.tryUse(Uris)?.schemeOf(argument) ?? /^([a-z][a-z0-9+.-]+):\/\//i.exec(argument)?.[1]?.toLowerCase();
  if (scheme !== undefined && scheme !== "file") {
    throw new ToolError(
      `Cannot use "${argument}": ${tool} looks at files and directories only; ${scheme}:// URLs can be read with read`,
    );
  }
  const path = resolvePath(ctx.cwd, argument);
  const shown = shownPath(ctx.cwd, path);
  const stats = await statPath(path, shown).catch((error: unknown) => {
    if (!ToolError.is(error) || !/[*?{[]/.test(argument)) throw error;
    const way =
      tool === "grep" ? "give wildcards as glob" : tool === "find" ? "give wildcards as pattern" : "find takes wildcards";
    throw new ToolError(`${error.message}; ${way}`, { cause: error });
  });
  if (stats.isDirectory()) {
    // A program started in there would fail with the program's name only.
    await access(path, constants.R_OK | constants.X_OK).catch((error: unknown) => {
      throw toolError(`Cannot look in ${shown}`, error);
    });
  }
  return { path, shown, stats };
}

/** Leaves the repository's own data out, unless it was asked for. */
export function withoutGit(path: string): string[] {
  return path.split("/").includes(".git") ? [] : ["--glob=!**/.git"];
}
