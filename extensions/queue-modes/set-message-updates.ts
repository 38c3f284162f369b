import { defineCommand, z } from "mortise/extension";

export default defineCommand({
  name: "set_message_updates",
  group: "Queue modes",
  summary: "Whether `message_update` frames carry the message so far or only the delta.",
  concurrency: "serial",
  source: "mortise",
  params: z.object({ mode: z.enum(["full", "delta"]) }),
  example: { params: { mode: "delta" } },
  run(ctx, { mode }) {
    ctx.conversation.messageUpdates = mode;
  },
});
