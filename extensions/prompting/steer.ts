import { defineCommand, ImageContent, z } from "mortise/extension";
import { queueMessage } from "./_queue.ts";

export default defineCommand({
  name: "steer",
  group: "Prompting",
  summary: "Queues a message that is read between tool calls or at the end of the turn.",
  concurrency: "serial",
  source: "both",
  params: z.object({ message: z.string(), images: z.array(ImageContent).optional() }),
  example: {
    params: { message: "Also include risks" },
    failure: 'Extension command "/deploy" cannot be queued. Use prompt() or execute the command when not streaming.',
  },
  run: (ctx, { message, images }) => queueMessage(ctx, "steer", message, images),
});
