import { join } from "node:path";
import { defineTool, ToolError, type ToolResult, textResult, truncateHead, z } from "mortise/extension";
import { literalOf, matcher, patternBelow } from "./_glob.ts";
import { shownPath } from "./_path.ts";
import { runRipgrep } from "./_rg.ts";
import { searchPath, withoutGit } from "./_search-path.ts";

const LIMIT = 1000;

const params = z.object({
  pattern: z
    .string()
    .min(1)
    .describe("Glob: a name such as *.ts finds it at any depth, a path such as src/**/*.ts from the directory on"),
  path: z.string().optional().describe("Directory to look in; the session's directory by default"),
  limit: z.number().int().min(1).max(10_000).optional().describe(`Entries to give, ${LIMIT} by default`),
  skip: z.number().int().min(0).optional().describe("Entries to pass over, to go on after a limit"),
});
type Params = z.infer<typeof params>;

export default defineTool<Params>({
  name: "find",
  description:
    "Find files and directories by glob. Gives paths sorted by name, directories with a / at the end. Hidden files are found, files ignored by .gitignore, empty directories and symbolic links are not.",
  promptSnippet: "Find files by name",
  params,
  readOnly: true,
  async run(ctx, args) {
    const { path, shown, stats } = await searchPath(ctx, args.path ?? ".", "find");
    if (!stats.isDirectory()) throw new ToolError(`Cannot look in ${shown}: it is not a directory`);
    const pattern = await patternBelow(args.pattern, path);
    const matches = await matcher(pattern);
    const found = new Found(args);
    const offer = (inside: string, directory: boolean) =>
      !matches(inside) || found.add(`${shownPath(ctx.cwd, join(path, inside))}${directory ? "/" : ""}`);
    const seen = new Set<string>();
    let lastFolder = "";
    const outcome = await runRipgrep(["--files", "--null", "--hidden", "--no-require-git", "--sort=path", ...withoutGit(path)], {
      // Without a path ripgrep gives names below its own directory.
      cwd: path,
      signal: ctx.signal,
      separator: 0,
      needle: literalOf(pattern),
      onRecord: (file) => {
        // ripgrep lists files only: a directory is met with its first file.
        const folder = file.slice(0, Math.max(0, file.lastIndexOf("/")));
        if (folder !== lastFolder) {
          lastFolder = folder;
          for (let end = file.indexOf("/"); end >= 0; end = file.indexOf("/", end + 1)) {
            const directory = file.slice(0, end);
            if (seen.has(directory)) continue;
            seen.add(directory);
            if (!offer(directory, true)) return false;
          }
        }
        return offer(file, false);
      },
    });
    return present(found, args, outcome.timedOut);
  },
});

class Found {
  readonly paths: string[] = [];
  limitReached = false;
  readonly #limit: number;
  #skip: number;

  constructor(args: Params) {
    this.#limit = args.limit ?? LIMIT;
    this.#skip = args.skip ?? 0;
  }

  /** False when there is one more than wanted. */
  add(path: string): boolean {
    if (this.#skip > 0) {
      this.#skip--;
      return true;
    }
    if (this.paths.length === this.#limit) {
      this.limitReached = true;
      return false;
    }
    this.paths.push(path);
    return true;
  }
}

function present(found: Found, args: Params, timedOut: boolean): ToolResult {
  const truncation = truncateHead(found.paths.join("\n"), { maxLines: 10_000 });
  const skip = args.skip ?? 0;
  const shown = truncation.truncated ? truncation.outputLines : found.paths.length;
  const notes: string[] = [];
  if (found.limitReached || truncation.truncated)
    notes.push(`${shown} entries shown, there are more; continue with skip=${skip + shown} or narrow the pattern`);
  if (timedOut) notes.push("The search was ended after 30 s and is incomplete; narrow it");
  const body = found.paths.length > 0 ? truncation.content : skip > 0 ? "No more entries" : `Nothing matches ${args.pattern}`;
  if (found.paths.length === 0 && skip === 0)
    notes.push("Ignored files, empty directories and symbolic links are not looked at; ls shows them");
  return textResult([body, ...notes.map((note) => `[${note}]`)].join("\n"), {
    fileCount: shown,
    ...(found.limitReached ? { resultLimitReached: found.paths.length } : {}),
    ...(truncation.truncated ? { truncation } : {}),
  });
}
