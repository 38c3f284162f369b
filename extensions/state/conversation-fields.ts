import { defineStateField, Model, ThinkingLevel, z } from "mortise/extension";

const queueMode = z.enum(["all", "one-at-a-time"]);
const toolSchema = z.object({ name: z.string(), description: z.string(), parameters: z.record(z.string(), z.unknown()) });

/** The fields of 000_…, "get_state payload", that describe the conversation itself. */
export default [
  defineStateField({ name: "model", schema: Model, read: (ctx) => ctx.conversation.selection.model }),
  defineStateField({
    name: "thinkingLevel",
    schema: ThinkingLevel,
    read: (ctx) => ctx.conversation.selection.thinkingLevel,
  }),
  defineStateField({ name: "isStreaming", schema: z.boolean(), read: (ctx) => ctx.conversation.isStreaming }),
  defineStateField({ name: "isCompacting", schema: z.boolean(), read: (ctx) => ctx.conversation.isCompacting }),
  defineStateField({ name: "steeringMode", schema: queueMode, read: (ctx) => ctx.conversation.queue.steeringMode }),
  defineStateField({ name: "followUpMode", schema: queueMode, read: (ctx) => ctx.conversation.queue.followUpMode }),
  defineStateField({
    name: "interruptMode",
    schema: z.enum(["immediate", "wait"]),
    read: (ctx) => ctx.conversation.queue.interruptMode,
  }),
  defineStateField({
    name: "sessionFile",
    schema: z.string().describe("Absent for in-memory sessions; the file appears with the first user message"),
    read: (ctx) => ctx.conversation.log.file,
  }),
  defineStateField({ name: "sessionId", schema: z.string(), read: (ctx) => ctx.conversation.log.id }),
  defineStateField({ name: "sessionName", schema: z.string(), read: (ctx) => ctx.conversation.log.name }),
  defineStateField({ name: "messageCount", schema: z.number().int(), read: (ctx) => ctx.conversation.messages.length }),
  defineStateField({ name: "queuedMessageCount", schema: z.number().int(), read: (ctx) => ctx.conversation.queue.count }),
  defineStateField({
    name: "systemPrompt",
    schema: z.array(z.string()),
    read: (ctx) => ctx.conversation.systemPrompt(),
  }),
  defineStateField({
    name: "dumpTools",
    schema: z.array(toolSchema),
    read: (ctx) => ctx.conversation.toolSchemas() as z.infer<typeof toolSchema>[],
  }),
  defineStateField({
    name: "contextUsage",
    schema: z.object({ tokens: z.number(), contextWindow: z.number(), percent: z.number() }),
    read: (ctx) => ctx.conversation.contextUsage(),
  }),
];
