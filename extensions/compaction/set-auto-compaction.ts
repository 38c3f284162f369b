import { CompactionEnabled, defineCommand, Settings, z } from "mortise/extension";

export default defineCommand({
  name: "set_auto_compaction",
  group: "Compaction",
  summary: "Turns automatic compaction on or off. For this process; no settings file is written.",
  concurrency: "serial",
  source: "both",
  params: z.object({ enabled: z.boolean() }),
  example: { params: { enabled: false } },
  run(ctx, { enabled }) {
    ctx.use(Settings).setRuntime(CompactionEnabled.name, enabled);
  },
});
