import { AgentMessage, defineCommand, z } from "mortise/extension";

export default defineCommand({
  name: "get_messages",
  group: "Messages",
  summary: "The messages in context, oldest first; a message that is being streamed may be absent.",
  concurrency: "serial",
  source: "both",
  params: z.object({}),
  result: z.object({ messages: z.array(AgentMessage) }),
  example: { params: {}, result: { messages: [] } },
  run: (ctx) => ({ messages: [...ctx.conversation.messages] }),
});
