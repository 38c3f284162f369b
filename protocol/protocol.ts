// The door "mortise/protocol": zod schemas of frames, messages and models, and the framing, for hosts that check what they read.
export { chunkCount, chunkLines, encodeChunk, type RpcChunk } from "./chunk.ts";
export {
  AssistantContent,
  ImageContent,
  InputContent,
  RedactedThinkingContent,
  TextContent,
  ThinkingContent,
  ToolCall,
} from "./content.ts";
export { FrameDecodeError, FrameDecoder } from "./decoder.ts";
export { FailureCode, type Frame, ReadyFrame, type RequestId, ResponseFrame } from "./frame.ts";
export { type LineProblem, LineSplitter, type LineSplitterOptions } from "./jsonl.ts";
export {
  CHUNK_BYTES,
  MAX_FRAME_BYTES,
  MAX_REASSEMBLED_FRAME_BYTES,
  PROTOCOL_VERSION,
  SUPPORTED_PROTOCOL_VERSIONS,
} from "./limits.ts";
export {
  AgentMessage,
  AssistantMessage,
  AssistantMessageEvent,
  BashExecutionMessage,
  BranchSummaryMessage,
  CompactionSummaryMessage,
  CustomMessage,
  DeveloperMessage,
  StopReason,
  ToolResult,
  ToolResultMessage,
  Usage,
  UserMessage,
} from "./message.ts";
export { Model, THINKING_EFFORTS, type ThinkingEffort, ThinkingLevel } from "./model.ts";
