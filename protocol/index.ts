// The door "mortise": the host's client and its types. No run-time dependency but Node.
export { HostError, type HostErrorCode } from "./client/errors.ts";
export { HostClient } from "./client/host-client.ts";
export type {
  ClientOptions,
  CommandName,
  EventName,
  ExitStatus,
  FramePredicate,
  HandlerContext,
  HostTool,
  HostToolContext,
  HostToolOutput,
  HostUriOutput,
  HostUriScheme,
  Params,
  PromptOptions,
  PromptOutcome,
  RequestArguments,
  RequestOptions,
  Result,
  SpawnOptions,
  UiHandlers,
} from "./client/types.ts";
export type { AssistantContent, ImageContent, InputContent, TextContent, ThinkingContent, ToolCall } from "./content.ts";
export type { FailureCode, Frame, RequestId, ResponseFrame } from "./frame.ts";
export type { CommandMap, EventMap } from "./generated/commands.ts";
export type { AgentMessage, AssistantMessage, StopReason, ToolResult, ToolResultMessage, Usage, UserMessage } from "./message.ts";
export type { Model, ThinkingEffort, ThinkingLevel } from "./model.ts";
