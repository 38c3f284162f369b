import { CommandError, type Context, Credentials, defineCommand, defineSlashCommand, Launch, z } from "mortise/extension";

/**
 * Writes the session as one page and gives its path: as named, or the absolute one of the default. The session is not changed.
 * @throws {CommandError}
 */
async function exportHtml(ctx: Context, outputPath: string | undefined): Promise<string> {
  const { log } = ctx.conversation;
  if (log.file === undefined) throw new CommandError("Cannot export in-memory session to HTML");
  if (!log.isMaterialized) throw new CommandError("Nothing to export yet: the session has no messages");
  const [{ loadHighlight }, { Images }, { loadMarkdown }, { maskFor }, { materialOf }, { renderPage }, write] = await Promise.all(
    [
      import("./_highlight.ts"),
      import("./_images.ts"),
      import("./_markdown.ts"),
      import("./_mask.ts"),
      import("./_material.ts"),
      import("./_page.ts"),
      import("./_write.ts"),
    ],
  );
  const { checkTarget, defaultName, targetPath, writeExport } = write;
  const mask = maskFor(ctx.tryUse(Credentials)?.secrets() ?? []);
  const cwd = ctx.tryUse(Launch)?.cwd ?? ctx.conversation.cwd;
  const named = outputPath !== undefined && outputPath !== "";
  const file = targetPath(named ? outputPath : defaultName(log.file, mask), cwd);
  await checkTarget(file);
  const material = await materialOf(ctx, mask);
  const highlight = await loadHighlight();
  const markdown = await loadMarkdown(highlight);
  await writeExport(file, await renderPage(material, { markdown, highlight, images: new Images(), calls: new Map() }));
  return named ? outputPath : file;
}

const command = defineCommand({
  name: "export_html",
  group: "Session",
  summary: "Writes the whole session, all branches, as one HTML file that needs no network; known and likely secrets are masked.",
  concurrency: "concurrent",
  source: "both",
  params: z.object({
    outputPath: z
      .string()
      .optional()
      .describe("Relative to the working directory; empty or absent: mortise-session-<name>.html there"),
  }),
  result: z.object({ path: z.string().describe("As given, or the absolute path of the default") }),
  example: {
    params: { outputPath: "session.html" },
    result: { path: "session.html" },
    failure: "Cannot export in-memory session to HTML",
  },
  run: async (ctx, { outputPath }) => ({ path: await exportHtml(ctx, outputPath) }),
});

const slash = defineSlashCommand({
  name: "export",
  description: "Write the session as an HTML file",
  argumentHint: "[path]",
  source: "builtin",
  concurrency: "concurrent",
  async run(ctx, args) {
    if (args === "copy" || args === "clipboard")
      return ctx.output("A session can be exported to a file only. Usage: /export [path]");
    const path = await exportHtml(ctx, args);
    ctx.output(`Exported to ${path}. Known and likely secrets are masked; look it over before you share it`);
  },
});

export default [command, slash];
