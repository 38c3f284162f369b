import { defineCommand, Extensions, ReloadReport, z } from "mortise/extension";

export default defineCommand({
  name: "reload_extensions",
  group: "Extensions",
  summary:
    "Loads one extension anew, or looks through all folders and loads every one; answers when the new versions are live or have failed. A version that fails leaves the one before in place.",
  // Loading waits for code that is not ours.
  concurrency: "concurrent",
  sealed: true,
  source: "mortise",
  params: z.object({ extensionId: z.string().min(1).optional().describe("Id or name; all of them when left out") }),
  result: z.object({ reports: z.array(ReloadReport) }),
  example: {
    params: { extensionId: "lint" },
    result: { reports: [{ id: "/home/ada/.mortise/extensions/lint.ts", outcome: "loaded", ms: 12 }] },
    failure: 'No extension is called "lint"',
  },
  async run(ctx, { extensionId }) {
    return { reports: [...(await ctx.use(Extensions).reload(extensionId))] };
  },
});
