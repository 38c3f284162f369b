// A tool that takes a while: it reports progress, stops when it is aborted and fails with a sentence the model can act on.
import { createReadStream } from "node:fs";
import { resolve } from "node:path";
import { defineTool, ToolError, textResult, z } from "mortise/extension";

export default defineTool({
  name: "count_lines",
  label: "Count lines",
  description: "Counts the lines of one or more files.",
  params: z.object({ paths: z.array(z.string()).min(1).describe("Files, relative to the working directory") }),
  async run(ctx, { paths }) {
    const counts: Record<string, number> = {};
    for (const path of paths) {
      // Each update is the whole result so far. Send as many as you like: the daemon keeps their rate down.
      ctx.update(textResult(`Counting ${path} (${Object.keys(counts).length + 1} of ${paths.length})`));
      counts[path] = await countLines(resolve(ctx.cwd, path), ctx.signal);
    }
    const lines = Object.entries(counts).map(([path, count]) => `${count} ${path}`);
    // The model reads the text; `details` are for the host and for hooks.
    return textResult(lines.join("\n"), { counts });
  },
});

async function countLines(file: string, signal: AbortSignal): Promise<number> {
  let count = 0;
  try {
    for await (const chunk of createReadStream(file, { signal, encoding: "utf8" })) count += String(chunk).split("\n").length - 1;
  } catch (error) {
    if (signal.aborted) throw error;
    throw new ToolError(`Cannot read ${file}: ${error instanceof Error ? error.message : String(error)}`);
  }
  return count;
}
