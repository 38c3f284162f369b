import { AgentMessage, CommandError, defineCommand, messagesPage, z } from "mortise/extension";

export default defineCommand({
  name: "get_messages_page",
  group: "Messages",
  summary: "One page of the messages in context, oldest first.",
  concurrency: "serial",
  source: "002",
  params: z.object({
    cursor: z.unknown().optional().describe("`nextCursor` of the page before"),
    limit: z.unknown().optional().describe("1 to 256 messages, 100 by default"),
  }),
  result: z.object({
    messages: z.array(AgentMessage),
    nextCursor: z.string().optional().describe("Absent on the last page"),
    totalMessages: z.number().int(),
  }),
  example: {
    params: { limit: 100 },
    result: { messages: [], totalMessages: 0 },
    failure: "Cannot page messages while the session is changing",
  },
  run(ctx, { cursor, limit }) {
    const { conversation } = ctx;
    if (conversation.isStreaming || conversation.isCompacting) {
      throw new CommandError("Cannot page messages while the session is changing", "session_busy");
    }
    const { id, leafId } = conversation.log;
    return messagesPage({ sessionId: id, leafId, messages: conversation.messages }, cursor, limit);
  },
});
