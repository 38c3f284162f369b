// A conversation as the Messages API wants it: pictures it can read, no blank text, results directly after their calls, thinking
// only from the model that thought it, and cache marks that stay where they are from turn to turn.

import type { Messages } from "@anthropic-ai/sdk/resources/messages";
import {
  type AssistantMessage,
  defineSetting,
  type Model,
  type ModelMessage,
  type ProviderRequest,
  Slices,
  type ThinkingLevel,
  z,
} from "mortise/extension";
import { blankResult, filled, Renaming, readImage, toolNames } from "./_content.ts";

type Param = Messages.MessageParam & { content: Messages.ContentBlockParam[] };

export interface BuiltRequest {
  params: Messages.MessageCreateParamsStreaming;
  /** Names and call ids in the service's alphabet. */
  names: Renaming;
}

const mark: Messages.CacheControlEphemeral = { type: "ephemeral" };

const tokens = z.number().int().positive();
export const budgetsSetting = defineSetting({
  name: "thinkingBudgets",
  summary: "Tokens of thinking per level, for models that think within a budget",
  schema: z.object({ minimal: tokens, low: tokens, medium: tokens, high: tokens, xhigh: tokens, max: tokens }).partial(),
  default: {},
});
export type Budgets = Partial<Record<Exclude<ThinkingLevel, "off">, number | undefined>>;

/** Agent-semantics §2.7. */
const defaultBudgets = { minimal: 1024, low: 2048, medium: 8192, high: 16_384, xhigh: 32_768, max: 32_768 };
/** The service's smallest budget, and what is kept for the answer when the model's limit is small. */
const MIN_BUDGET = 1024;
const DEFAULT_MAX_TOKENS = 8192;

/** In slices of time: a context may hold ten thousands of messages. */
export async function buildRequest(request: ProviderRequest, budgets: Budgets = {}): Promise<BuiltRequest> {
  const names = toolNames(request, 128);
  const ids = new Renaming(64);
  const messages = await convert(request, names, ids);
  const system = request.systemPrompt
    .filter((text) => text.trim() !== "")
    .map((text): Messages.TextBlockParam => ({ type: "text", text }));
  const tools = request.tools.map((tool) => ({
    name: names.to(tool.name),
    description: tool.description,
    input_schema: { ...tool.parameters, type: "object" as const },
  })) satisfies Messages.Tool[];
  markLast(system);
  markLast(tools);
  for (const turn of messages.filter((message) => message.role === "user").slice(-2)) markLast(turn.content);
  const params: Messages.MessageCreateParamsStreaming = {
    model: request.model.requestModelId ?? request.model.id,
    ...thinking(request, messages, budgets),
    messages,
    stream: true,
  };
  if (system.length > 0) params.system = system;
  if (tools.length > 0) {
    params.tools = tools;
    if (request.toolChoice === "none") params.tool_choice = { type: "none" };
  }
  return { params, names };
}

function markLast(blocks: object[]): void {
  const place = blocks.findLastIndex((block) => !("type" in block && /thinking/.test(String(block.type))));
  const block = blocks[place];
  if (block !== undefined) blocks[place] = { ...block, cache_control: mark };
}

interface ThinkingParams {
  max_tokens: number;
  thinking?: Messages.ThinkingConfigParam;
  output_config?: Messages.OutputConfig;
}

function thinking(request: ProviderRequest, messages: readonly Param[], budgets: Budgets): ThinkingParams {
  const { model, thinkingLevel: level } = request;
  const limit = model.maxTokens ?? DEFAULT_MAX_TOKENS;
  const base = Math.min(request.maxTokens ?? limit, limit);
  if (!model.reasoning) return { max_tokens: base };
  if (level === "off") return { max_tokens: base, ...thinkingOff(model) };
  if (model.thinking?.mode === "adaptive" || model.thinking?.mode === "effort") {
    // Levels the service has no word for are asked for as its lowest.
    const effort = level === "minimal" ? "low" : level;
    const display = model.compat?.["thinkingDisplay"] === "summarized" ? { display: "summarized" as const } : {};
    return {
      max_tokens: base,
      ...(model.thinking.mode === "adaptive" && { thinking: { type: "adaptive", ...display } }),
      output_config: { effort },
    };
  }
  if (!leadsWithThinking(messages)) return { max_tokens: base };
  const wanted = Math.max(budgets[level] ?? defaultBudgets[level], MIN_BUDGET);
  const max = Math.min(base + wanted, limit);
  const budget = max <= wanted ? max - MIN_BUDGET : wanted;
  return budget < MIN_BUDGET ? { max_tokens: base } : { max_tokens: max, thinking: { type: "enabled", budget_tokens: budget } };
}

function thinkingOff(model: Model): Partial<ThinkingParams> {
  const off = model.thinking?.off ?? (model.thinking?.mode === "adaptive" ? "disabled" : "omit");
  if (off === "disabled") return { thinking: { type: "disabled" } };
  if (off === "between_tools") return { thinking: { type: "between_tools" } };
  return off === "never" ? { output_config: { effort: "low" } } : {};
}

/**
 * With a budget the service insists that a turn still waiting for tool results begins with its thinking. When the turn was begun
 * without (another level or model), thinking pauses until the next turn.
 */
function leadsWithThinking(messages: readonly Param[]): boolean {
  const last = messages.at(-1);
  if (!last?.content.some((block) => block.type === "tool_result")) return true;
  const first = messages.at(-2)?.content[0]?.type;
  return first === "thinking" || first === "redacted_thinking";
}

async function convert(request: ProviderRequest, names: Renaming, ids: Renaming): Promise<Param[]> {
  const slices = new Slices();
  const turns: Param[] = [];
  for (const message of request.messages) {
    if (slices.due) await slices.rest();
    const content = blocksOf(message, request.model, names, ids);
    if (content.length === 0) continue;
    const role = message.role === "assistant" ? "assistant" : "user";
    const last = turns.at(-1);
    // Results of one turn belong into one message, in front of whatever the user says next.
    if (last?.role === role && role === "user") last.content.push(...content);
    else turns.push({ role, content });
  }
  if (turns.length === 0) turns.push({ role: "user", content: [{ type: "text", text: "(empty message)" }] });
  return turns;
}

function blocksOf(message: ModelMessage, model: Model, names: Renaming, ids: Renaming): Messages.ContentBlockParam[] {
  if (message.role === "assistant") return assistantBlocks(message, model, names, ids);
  const blocks = filled(message.content).map((block): Messages.TextBlockParam | Messages.ImageBlockParam => {
    if (block.type === "text") return { type: "text", text: block.text };
    const image = readImage(block, model);
    if (typeof image === "string") return { type: "text", text: image };
    return { type: "image", source: { type: "base64", media_type: image.mimeType, data: image.data } };
  });
  if (message.role === "user") return blocks;
  return [
    {
      type: "tool_result",
      tool_use_id: ids.to(message.toolCallId),
      content: blocks.length > 0 ? blocks : [{ type: "text", text: blankResult(message) }],
      ...(message.isError && { is_error: true }),
    },
  ];
}

function assistantBlocks(message: AssistantMessage, model: Model, names: Renaming, ids: Renaming): Messages.ContentBlockParam[] {
  const isOwn = message.api === model.api && message.provider === model.provider && message.model === model.id;
  const blocks: Messages.ContentBlockParam[] = [];
  for (const block of message.content) {
    if (block.type === "text" && block.text.trim() !== "") blocks.push({ type: "text", text: block.text });
    else if (block.type === "toolCall") {
      blocks.push({ type: "tool_use", id: ids.to(block.id), name: names.to(block.name), input: block.arguments });
    } else if (block.type === "thinking" && isOwn && block.thinkingSignature) {
      blocks.push({ type: "thinking", thinking: block.thinking, signature: block.thinkingSignature });
    } else if (block.type === "redactedThinking" && isOwn) {
      blocks.push({ type: "redacted_thinking", data: block.data });
    }
  }
  // Thinking that led to nothing (an aborted answer) means nothing to the service.
  return blocks.some((block) => block.type === "text" || block.type === "tool_use") ? blocks : [];
}
