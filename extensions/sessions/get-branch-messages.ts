import { defineCommand, z } from "mortise/extension";

export default defineCommand({
  name: "get_branch_messages",
  group: "Session",
  summary: "User messages of the whole session file with the ids `branch` takes.",
  concurrency: "serial",
  source: "both",
  params: z.object({}),
  result: z.object({ messages: z.array(z.object({ entryId: z.string(), text: z.string() })) }),
  example: { params: {}, result: { messages: [{ entryId: "a1b2c3d4", text: "Rename the parser" }] } },
  run: (ctx) => ({ messages: ctx.conversation.log.userMessages() }),
});
