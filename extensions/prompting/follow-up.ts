import { defineCommand, ImageContent, z } from "mortise/extension";
import { queueMessage } from "./_queue.ts";

export default defineCommand({
  name: "follow_up",
  group: "Prompting",
  summary: "Queues a message that is read when the run would end.",
  concurrency: "serial",
  source: "both",
  params: z.object({ message: z.string(), images: z.array(ImageContent).optional() }),
  example: {
    params: { message: "Also include risks" },
    failure: 'Extension command "/deploy" cannot be queued. Use prompt() or execute the command when not streaming.',
  },
  run: (ctx, { message, images }) => queueMessage(ctx, "followUp", message, images),
});
