// Content blocks: what messages and tool results are made of.
import { z } from "zod";

export const TextContent = z
  .object({
    type: z.literal("text"),
    text: z.string(),
    textSignature: z.string().optional(),
  })
  .meta({ id: "TextContent" });
export type TextContent = z.infer<typeof TextContent>;

export const ImageContent = z
  .object({
    type: z.literal("image"),
    data: z.string().describe("Base64 without a data: prefix"),
    mimeType: z.string(),
    detail: z.enum(["auto", "low", "high", "original"]).optional(),
  })
  .meta({ id: "ImageContent" });
export type ImageContent = z.infer<typeof ImageContent>;

export const ThinkingContent = z
  .object({
    type: z.literal("thinking"),
    thinking: z.string(),
    thinkingSignature: z.string().optional(),
    itemId: z.string().optional(),
  })
  .meta({ id: "ThinkingContent" });
export type ThinkingContent = z.infer<typeof ThinkingContent>;

export const RedactedThinkingContent = z
  .object({ type: z.literal("redactedThinking"), data: z.string() })
  .meta({ id: "RedactedThinkingContent" });
export type RedactedThinkingContent = z.infer<typeof RedactedThinkingContent>;

export const ToolCall = z
  .object({
    type: z.literal("toolCall"),
    id: z.string(),
    name: z.string(),
    arguments: z.record(z.string(), z.unknown()),
    thoughtSignature: z.string().optional(),
    intent: z.string().optional(),
  })
  .meta({ id: "ToolCall" });
export type ToolCall = z.infer<typeof ToolCall>;

/** What a user message or a tool result may hold. */
export const InputContent = z.discriminatedUnion("type", [TextContent, ImageContent]).meta({ id: "InputContent" });
export type InputContent = z.infer<typeof InputContent>;

/** What an assistant message may hold. */
export const AssistantContent = z
  .discriminatedUnion("type", [TextContent, ThinkingContent, RedactedThinkingContent, ToolCall])
  .meta({ id: "AssistantContent" });
export type AssistantContent = z.infer<typeof AssistantContent>;
