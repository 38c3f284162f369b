import { defineCommand, ImageContent, z } from "mortise/extension";
import { submitLater } from "./_submit.ts";

/** Never sends `prompt_result` nor `data.agentInvoked` (000_…, "Edge behavior"). */
export default defineCommand({
  name: "abort_and_prompt",
  group: "Prompting",
  summary: "Ends the run as `abort` does, then sends a user message.",
  concurrency: "serial",
  sealed: true,
  source: "both",
  params: z.object({ message: z.string(), images: z.array(ImageContent).optional() }),
  example: { params: { message: "Stop that and list the files" } },
  async run(ctx, { message, images }) {
    await ctx.conversation.abort("Interrupted by user", { resume: false });
    submitLater(ctx, { text: message, images }, false);
  },
});
