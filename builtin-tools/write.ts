import { defineTool, FileLocks, type ToolContext, ToolError, type ToolResult, textResult, Uris, z } from "mortise/extension";
import { toolError } from "./_open.ts";
import { realPath, resolvePath, shownPath } from "./_path.ts";
import { replaceFile } from "./_replace.ts";
import { markSeen, seenVersion, versionOf } from "./_seen.ts";

const params = z.object({
  path: z.string().describe("File to create or overwrite"),
  content: z.string().describe("The complete new content"),
});
type Params = z.infer<typeof params>;

export default defineTool<Params>({
  name: "write",
  description:
    "Create a file or overwrite it completely; missing directories are created. To change parts of a file use edit. Symbolic links are followed.",
  promptSnippet: "Create or overwrite files",
  params,
  async run(ctx, args) {
    const scheme = ctx.tryUse(Uris)?.schemeOf(args.path);
    if (scheme !== undefined && scheme !== "file") return writeVirtual(ctx, args);
    const path = resolvePath(ctx.cwd, args.path);
    const shown = shownPath(ctx.cwd, path);
    if (args.path.endsWith("/")) throw new ToolError(`Cannot write ${args.path}: a file's name does not end in a slash`);
    const real = await realPath(path).catch((error: unknown) => {
      throw toolError(`Cannot write ${shown}`, error);
    });
    return ctx.use(FileLocks).run(real, () => writePath(ctx, { real, path, shown }, args.content));
  },
});

async function writePath(
  ctx: ToolContext,
  file: { real: string; path: string; shown: string },
  content: string,
): Promise<ToolResult> {
  ctx.signal.throwIfAborted();
  const known = seenVersion(ctx, file.real);
  const current = await versionOf(file.real);
  const changed = known !== undefined && current !== undefined && known !== current;
  const bytes = Buffer.from(content);
  const { existed, madeExecutable } = await replaceFile(file.real, bytes, { shown: file.shown, signal: ctx.signal });
  await markSeen(ctx, file.real);
  const notes: string[] = [];
  if (changed) {
    notes.push(
      "Warning: the file had changed since it was read; those changes by somebody else are overwritten now. Check with the user or version control before going on",
    );
  }
  if (madeExecutable) notes.push("Made executable, because it starts with #!");
  if (!content.isWellFormed()) notes.push("Unpaired surrogates were written as U+FFFD");
  const verb = existed ? "Overwrote" : "Created";
  const text = [`${verb} ${file.shown} (${bytes.length} bytes)`, ...notes.map((note) => `[${note}]`)].join("\n");
  return textResult(text, {
    resolvedPath: file.path,
    bytes: bytes.length,
    created: !existed,
    ...(madeExecutable ? { madeExecutable } : {}),
    ...(changed ? { changedSinceRead: true } : {}),
  });
}

async function writeVirtual(ctx: ToolContext, args: Params): Promise<ToolResult> {
  await ctx.use(Uris).write(args.path, args.content, ctx);
  return textResult(`Wrote ${args.path} (${Buffer.byteLength(args.content)} bytes)`, { url: args.path });
}
