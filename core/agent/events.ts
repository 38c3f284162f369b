// The frames of the turn loop, in the grammar of protocol-facts §2.1:
// agent_start { turn_start messages tools turn_end }* agent_end. One agent_start and one agent_end per accepted work, retries included.
import { z } from "zod";
import { AgentMessage, AssistantMessage, AssistantMessageEvent, ToolResult, ToolResultMessage } from "../../protocol/message.ts";
import { defineFrame } from "../kernel/definition.ts";

const usage = {
  input: 12,
  output: 3,
  cacheRead: 0,
  cacheWrite: 0,
  totalTokens: 15,
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
};
const assistant = {
  role: "assistant",
  content: [{ type: "text", text: "Done" }],
  api: "offline",
  provider: "offline",
  model: "echo",
  usage,
  stopReason: "stop",
  timestamp: 1764495420000,
};
const toolResult = {
  role: "toolResult",
  toolCallId: "call_1",
  toolName: "read",
  content: [{ type: "text", text: "a line" }],
  isError: false,
  timestamp: 1764495420000,
};
const args = z.record(z.string(), z.unknown());

export const agentStart = defineFrame({
  name: "agent_start",
  summary: "Work on a prompt begins",
  fields: z.object({}),
  scope: "conversation",
  source: "both",
  example: { type: "agent_start" },
});

export const agentEnd = defineFrame({
  name: "agent_end",
  summary: "Work on a prompt is over, retries and continuations included; carries every message it made",
  fields: z.object({ messages: z.array(AgentMessage) }),
  scope: "conversation",
  source: "both",
  example: { type: "agent_end", messages: [assistant] },
});

export const turnStart = defineFrame({
  name: "turn_start",
  summary: "A turn begins: one answer of the model and the tools it calls",
  fields: z.object({}),
  scope: "conversation",
  source: "both",
  example: { type: "turn_start" },
});

export const turnEnd = defineFrame({
  name: "turn_end",
  summary: "A turn is over; `toolResults` stand in call order",
  fields: z.object({ message: AssistantMessage, toolResults: z.array(ToolResultMessage) }),
  scope: "conversation",
  source: "both",
  example: { type: "turn_end", message: assistant, toolResults: [toolResult] },
});

export const messageStart = defineFrame({
  name: "message_start",
  summary: "A message enters the conversation; for an answer of the model its content is still empty",
  fields: z.object({ message: AgentMessage }),
  scope: "conversation",
  source: "both",
  example: {
    type: "message_start",
    message: { role: "user", content: [{ type: "text", text: "Hello" }], timestamp: 1764495420000 },
  },
});

export const messageUpdate = defineFrame({
  name: "message_update",
  summary: "The model's answer grew; `message` is the answer so far, or without content in delta mode",
  fields: z.object({ message: AssistantMessage, assistantMessageEvent: AssistantMessageEvent }),
  scope: "conversation",
  source: "both",
  example: {
    type: "message_update",
    message: assistant,
    assistantMessageEvent: { type: "text_delta", contentIndex: 0, delta: "Done", partial: { ...assistant, content: [] } },
  },
});

export const messageEnd = defineFrame({
  name: "message_end",
  summary: "A message is final and stored",
  fields: z.object({ message: AgentMessage }),
  scope: "conversation",
  source: "both",
  example: { type: "message_end", message: assistant },
});

export const toolExecutionStart = defineFrame({
  name: "tool_execution_start",
  summary: "A tool call is taken up; `args` are repaired and validated where that was possible",
  fields: z.object({ toolCallId: z.string(), toolName: z.string(), args, intent: z.string().optional() }),
  scope: "conversation",
  source: "both",
  example: { type: "tool_execution_start", toolCallId: "call_1", toolName: "read", args: { path: "a.txt" } },
});

export const toolExecutionUpdate = defineFrame({
  name: "tool_execution_update",
  summary: "What a running tool has so far: a whole snapshot, at most ten a second",
  fields: z.object({ toolCallId: z.string(), toolName: z.string(), args, partialResult: ToolResult }),
  scope: "conversation",
  source: "both",
  example: {
    type: "tool_execution_update",
    toolCallId: "call_1",
    toolName: "read",
    args: { path: "a.txt" },
    partialResult: { content: [{ type: "text", text: "a" }] },
  },
});

export const toolExecutionEnd = defineFrame({
  name: "tool_execution_end",
  summary: "A tool call is over",
  fields: z.object({ toolCallId: z.string(), toolName: z.string(), result: ToolResult, isError: z.boolean() }),
  scope: "conversation",
  source: "both",
  example: {
    type: "tool_execution_end",
    toolCallId: "call_1",
    toolName: "read",
    result: { content: [{ type: "text", text: "a line" }] },
    isError: false,
  },
});

export const notice = defineFrame({
  name: "notice",
  summary: "Something a person should know that is no answer to a command",
  fields: z.object({ level: z.enum(["info", "warning", "error"]), message: z.string(), source: z.string().optional() }),
  scope: "process",
  source: "both",
  example: { type: "notice", level: "warning", message: "The session file cannot be written", source: "session" },
});

/** Every frame of the loop; a built-in unit registers them. */
export const agentFrames = [
  agentStart,
  agentEnd,
  turnStart,
  turnEnd,
  messageStart,
  messageUpdate,
  messageEnd,
  toolExecutionStart,
  toolExecutionUpdate,
  toolExecutionEnd,
  notice,
] as const;
