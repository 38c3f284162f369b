import { defineCommand, Settings, z } from "mortise/extension";

export default defineCommand({
  name: "set_interrupt_mode",
  group: "Queue modes",
  summary: "Whether steering is looked for between tool calls or at the end of the turn; holds from the next run on.",
  concurrency: "serial",
  source: "both",
  params: z.object({ mode: z.enum(["immediate", "wait"]) }),
  example: { params: { mode: "wait" } },
  run(ctx, { mode }) {
    ctx.tryUse(Settings)?.setRuntime("interruptMode", mode);
    ctx.conversation.queue.interruptMode = mode;
  },
});
