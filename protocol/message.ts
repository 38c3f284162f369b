// Messages of a conversation, as they stand on the wire and in session files. Timestamps are Unix milliseconds.
import { z } from "zod";
import { AssistantContent, InputContent } from "./content.ts";

export const Usage = z
  .object({
    input: z.number(),
    output: z.number(),
    cacheRead: z.number(),
    cacheWrite: z.number(),
    totalTokens: z.number(),
    reasoningTokens: z.number().optional(),
    cost: z
      .object({
        input: z.number(),
        output: z.number(),
        cacheRead: z.number(),
        cacheWrite: z.number(),
        total: z.number(),
      })
      .describe("US dollars"),
  })
  .meta({ id: "Usage" });
export type Usage = z.infer<typeof Usage>;

export const StopReason = z.enum(["stop", "length", "toolUse", "error", "aborted"]).meta({ id: "StopReason" });
export type StopReason = z.infer<typeof StopReason>;

const attribution = z.enum(["user", "agent"]).optional();
const timestamp = z.number().describe("Unix milliseconds");

export const UserMessage = z
  .object({
    role: z.literal("user"),
    content: z.union([z.string(), z.array(InputContent)]),
    timestamp,
    synthetic: z.boolean().optional(),
    steering: z.boolean().optional(),
    attribution,
  })
  .meta({ id: "UserMessage" });
export type UserMessage = z.infer<typeof UserMessage>;

export const DeveloperMessage = z
  .object({
    role: z.literal("developer"),
    content: z.union([z.string(), z.array(InputContent)]),
    timestamp,
    attribution,
  })
  .meta({ id: "DeveloperMessage" });
export type DeveloperMessage = z.infer<typeof DeveloperMessage>;

export const AssistantMessage = z
  .object({
    role: z.literal("assistant"),
    content: z.array(AssistantContent),
    api: z.string(),
    provider: z.string(),
    model: z.string(),
    usage: Usage,
    stopReason: StopReason,
    timestamp,
    errorMessage: z.string().optional(),
    errorStatus: z.number().optional().describe("HTTP status of the failure"),
    responseId: z.string().optional(),
    duration: z.number().optional().describe("Milliseconds from request to end"),
    ttft: z.number().optional().describe("Milliseconds from request to the first delta"),
  })
  .meta({ id: "AssistantMessage" });
export type AssistantMessage = z.infer<typeof AssistantMessage>;

export const ToolResultMessage = z
  .object({
    role: z.literal("toolResult"),
    toolCallId: z.string(),
    toolName: z.string(),
    content: z.array(InputContent),
    details: z.unknown().optional(),
    isError: z.boolean(),
    timestamp,
  })
  .meta({ id: "ToolResultMessage" });
export type ToolResultMessage = z.infer<typeof ToolResultMessage>;

export const CustomMessage = z
  .object({
    role: z.literal("custom"),
    customType: z.string(),
    content: z.union([z.string(), z.array(InputContent)]),
    display: z.boolean(),
    details: z.unknown().optional(),
    attribution,
    timestamp,
  })
  .meta({ id: "CustomMessage" });
export type CustomMessage = z.infer<typeof CustomMessage>;

export const BashExecutionMessage = z
  .object({
    role: z.literal("bashExecution"),
    command: z.string(),
    output: z.string(),
    exitCode: z.number().optional(),
    cancelled: z.boolean(),
    truncated: z.boolean(),
    fullOutputPath: z.string().optional(),
    excludeFromContext: z.boolean().optional(),
    timestamp,
  })
  .meta({ id: "BashExecutionMessage" });
export type BashExecutionMessage = z.infer<typeof BashExecutionMessage>;

export const BranchSummaryMessage = z
  .object({ role: z.literal("branchSummary"), summary: z.string(), fromId: z.string(), timestamp })
  .meta({ id: "BranchSummaryMessage" });
export type BranchSummaryMessage = z.infer<typeof BranchSummaryMessage>;

export const CompactionSummaryMessage = z
  .object({
    role: z.literal("compactionSummary"),
    summary: z.string(),
    shortSummary: z.string().optional(),
    tokensBefore: z.number(),
    timestamp,
  })
  .meta({ id: "CompactionSummaryMessage" });
export type CompactionSummaryMessage = z.infer<typeof CompactionSummaryMessage>;

/** Any message of a conversation's context. */
export const AgentMessage = z
  .discriminatedUnion("role", [
    UserMessage,
    DeveloperMessage,
    AssistantMessage,
    ToolResultMessage,
    CustomMessage,
    BashExecutionMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
  ])
  .meta({ id: "AgentMessage" });
export type AgentMessage = z.infer<typeof AgentMessage>;

/** What a tool gives back. `partialResult` and `result` of the tool events have this shape. */
export const ToolResult = z
  .object({
    content: z.array(InputContent),
    details: z.unknown().optional(),
    isError: z.boolean().optional(),
  })
  .meta({ id: "ToolResult" });
export type ToolResult = z.infer<typeof ToolResult>;

/** The inner event of `message_update`; `partial` carries role and empty content (DESIGN: "streamed message_update"). */
export const AssistantMessageEvent = z
  .discriminatedUnion("type", [
    z.object({ type: z.literal("text_start"), contentIndex: z.number().int(), partial: AssistantMessage }),
    z.object({ type: z.literal("text_delta"), contentIndex: z.number().int(), delta: z.string(), partial: AssistantMessage }),
    z.object({ type: z.literal("text_end"), contentIndex: z.number().int(), content: z.string(), partial: AssistantMessage }),
    z.object({ type: z.literal("thinking_start"), contentIndex: z.number().int(), partial: AssistantMessage }),
    z.object({ type: z.literal("thinking_delta"), contentIndex: z.number().int(), delta: z.string(), partial: AssistantMessage }),
    z.object({ type: z.literal("thinking_end"), contentIndex: z.number().int(), content: z.string(), partial: AssistantMessage }),
    z.object({ type: z.literal("toolcall_start"), contentIndex: z.number().int(), partial: AssistantMessage }),
    z.object({ type: z.literal("toolcall_delta"), contentIndex: z.number().int(), delta: z.string(), partial: AssistantMessage }),
    z.object({
      type: z.literal("toolcall_end"),
      contentIndex: z.number().int(),
      toolCall: AssistantContent,
      partial: AssistantMessage,
    }),
  ])
  .meta({ id: "AssistantMessageEvent" });
export type AssistantMessageEvent = z.infer<typeof AssistantMessageEvent>;
