// Takes the place of the built-in `read` tool and passes through to it with `ctx.next`.
//
// For a change of the arguments or of the result alone the hooks toolRewrite and toolFinished are simpler. Overriding is for
// deciding whether and how the tool below runs at all.
import { defineTool, ToolError, z } from "mortise/extension";

export default defineTool({
  name: "read",
  // The model sees this description and these parameters, so they say all that the built-in's do.
  description: "Read a file, directory or web page. Large files come in parts; the last line says how to go on.",
  params: z.object({
    path: z.string().describe("File, directory or URL"),
    offset: z.number().int().min(1).optional().describe("First line, from 1"),
    limit: z.number().int().min(1).optional().describe("Number of lines"),
  }),
  async run(ctx, args) {
    if (ctx.next === undefined) throw new ToolError("There is no read tool below this one");
    if (/\.(pem|key)$/.test(args.path)) throw new ToolError("Private keys are not for reading; use the name of the file only");
    const started = performance.now();
    const result = await ctx.next(args);
    ctx.log.debug("Read a file", { path: args.path, ms: performance.now() - started });
    return result;
  },
});
