import { type Dirent, promises as fs } from "node:fs";
import { join } from "node:path";
import { defineTool, textResult, truncateHead, z } from "mortise/extension";
import { toolError } from "./_open.ts";
import { searchPath } from "./_search-path.ts";

const LIMIT = 500;

const params = z.object({
  path: z.string().optional().describe("Directory; the session's directory by default"),
  limit: z.number().int().min(1).max(10_000).optional().describe(`Entries to give, ${LIMIT} by default`),
  skip: z.number().int().min(0).optional().describe("Entries to pass over, to go on after a limit"),
});

export default defineTool<z.infer<typeof params>>({
  name: "ls",
  description: "List a directory: names sorted, directories with a / at the end, hidden and ignored entries included.",
  promptSnippet: "List directories",
  params,
  readOnly: true,
  async run(ctx, { path: argument = ".", limit = LIMIT, skip = 0 }) {
    const { path, shown, stats } = await searchPath(ctx, argument, "ls");
    if (!stats.isDirectory()) return textResult(shown);
    const entries = await fs.readdir(path, { withFileTypes: true }).catch((error: unknown) => {
      throw toolError(`Cannot list ${shown}`, error);
    });
    const sorted = entries.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
    const names = await Promise.all(sorted.slice(skip, skip + limit).map((entry) => label(path, entry)));
    const truncation = truncateHead(names.join("\n"), { maxLines: 10_000 });
    const count = truncation.truncated ? truncation.outputLines : names.length;
    const more = entries.length - skip - count;
    const body = names.length > 0 ? truncation.content : entries.length === 0 ? "(empty directory)" : "No more entries";
    const note = more > 0 ? `\n[${count} of ${entries.length} entries shown; continue with skip=${skip + count}]` : "";
    return textResult(body + note, {
      ...(more > 0 && !truncation.truncated ? { entryLimitReached: limit } : {}),
      ...(truncation.truncated ? { truncation } : {}),
    });
  },
});

/** A link to a directory counts as one. */
async function label(path: string, entry: Dirent): Promise<string> {
  const directory =
    entry.isDirectory() ||
    (entry.isSymbolicLink() &&
      (await fs.stat(join(path, entry.name)).then(
        (stats) => stats.isDirectory(),
        () => false,
      )));
  return `${entry.name.replace(/[\x00-\x1f\x7f]/g, "?")}${directory ? "/" : ""}`;
}
