import { defineCommand, z } from "mortise/extension";

const tokens = z.object({
  input: z.number(),
  output: z.number(),
  reasoning: z.number(),
  cacheRead: z.number(),
  cacheWrite: z.number(),
  total: z.number(),
});

export default defineCommand({
  name: "get_session_stats",
  group: "Session",
  summary: "Counts, tokens and cost of the messages in context.",
  concurrency: "serial",
  source: "both",
  params: z.object({}),
  result: z.object({
    sessionFile: z.string().optional(),
    sessionId: z.string(),
    userMessages: z.number().int(),
    assistantMessages: z.number().int(),
    toolCalls: z.number().int(),
    toolResults: z.number().int(),
    totalMessages: z.number().int(),
    tokens,
    premiumRequests: z.number(),
    cost: z.number().describe("US dollars"),
    contextUsage: z.object({ tokens: z.number(), contextWindow: z.number(), percent: z.number() }).optional(),
  }),
  example: { params: {} },
  run(ctx) {
    const { log } = ctx.conversation;
    const contextUsage = ctx.conversation.contextUsage();
    return {
      ...(log.file === undefined ? {} : { sessionFile: log.file }),
      sessionId: log.id,
      ...log.stats(),
      premiumRequests: 0,
      ...(contextUsage === undefined ? {} : { contextUsage }),
    };
  },
});
