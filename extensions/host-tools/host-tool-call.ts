import { defineHostRequest, ToolResult, z } from "mortise/extension";

/** A call of a host-owned tool (000_…, "Host Tool Sub-Protocol"). */
export default defineHostRequest({
  name: "host_tool_call",
  summary: "Asks the host to run one of its tools.",
  ask: z.object({
    toolCallId: z.string().describe("The model's id of the call"),
    toolName: z.string(),
    arguments: z.record(z.string(), z.unknown()),
  }),
  answerType: "host_tool_result",
  answer: z.object({
    result: z.looseObject({ content: z.array(z.unknown()), details: z.unknown().optional(), isError: z.boolean().optional() }),
    isError: z.unknown().optional(),
  }),
  misfitMessage: "Invalid host_tool_result: expected `result.content` to be an array of content blocks",
  progressType: "host_tool_update",
  progress: z.object({ partialResult: ToolResult }),
  cancelType: "host_tool_cancel",
  idPrefix: "host",
  disconnectMessage: "RPC client disconnected before host tool execution completed",
});
