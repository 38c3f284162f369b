import { defineCommand, Settings, z } from "mortise/extension";

export default defineCommand({
  name: "set_steering_mode",
  group: "Queue modes",
  summary: "How many steering messages are read at once. For this process; no settings file is written.",
  concurrency: "serial",
  source: "both",
  params: z.object({ mode: z.enum(["all", "one-at-a-time"]) }),
  example: { params: { mode: "one-at-a-time" } },
  run(ctx, { mode }) {
    ctx.tryUse(Settings)?.setRuntime("steeringMode", mode);
    ctx.conversation.queue.steeringMode = mode;
  },
});
