import { defineCommand, z } from "mortise/extension";

export default defineCommand({
  name: "get_last_assistant_text",
  group: "Session",
  summary: "Text of the latest answer, or null when there is none.",
  concurrency: "serial",
  source: "both",
  params: z.object({}),
  result: z.object({ text: z.string().nullable() }),
  example: { params: {}, result: { text: "Done." } },
  run(ctx) {
    for (const message of ctx.conversation.messages.toReversed()) {
      if (message.role !== "assistant") continue;
      if (message.stopReason === "aborted" && message.content.length === 0) continue;
      const text = message.content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("");
      return { text: text.trim() };
    }
    return { text: null };
  },
});
