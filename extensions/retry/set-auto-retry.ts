import { defineCommand, Settings, z } from "mortise/extension";

export default defineCommand({
  name: "set_auto_retry",
  group: "Retry",
  summary: "Turns retries of failed model calls on or off. For this process; no settings file is written.",
  concurrency: "serial",
  source: "both",
  params: z.object({ enabled: z.boolean() }),
  example: { params: { enabled: false } },
  run(ctx, { enabled }) {
    ctx.use(Settings).setRuntime("retry.enabled", enabled);
  },
});
