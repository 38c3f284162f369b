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
import { Beginnings, bodyOf, type Group, type Language, Renamings } from "./_beginnings.ts";
import { keepsThinking, refusalsSoFar } from "./_bound-thinking.ts";
import { blankResult, filled, Renaming, readImage, toolNames } from "./_content.ts";

/** What the service sees as one message. */
interface Turn extends Group {
  readonly role: "user" | "assistant";
  readonly messages: ModelMessage[];
  readonly content: Messages.ContentBlockParam[];
  mark: Group["mark"];
}

export interface BuiltRequest {
  /** `MessageCreateParamsStreaming` as JSON. */
  body: Uint8Array;
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

const beginnings = new Beginnings<Turn>();
/** User turns that carry a cache mark, so that the next request finds the cache of this one. */
const MARKED_TURNS = 2;

/** In slices of time: a context may hold ten thousands of messages. */
export async function buildRequest(request: ProviderRequest, budgets: Budgets = {}): Promise<BuiltRequest> {
  const { parts, groups: turns, renamings } = await beginnings.tell(request, languageOf(request));
  const { names } = renamings;
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
  const toolChoice = choiceOf(request, names);
  const isForced = toolChoice !== undefined && toolChoice.type !== "none";
  const isAsked = leadsWithThinking(turns.at(-1)?.content ?? [], turns.at(-2)?.content ?? []);
  const before: Omit<Messages.MessageCreateParamsStreaming, "messages" | "stream"> = {
    model: request.model.requestModelId ?? request.model.id,
    ...thinking(isForced ? { ...request, thinkingLevel: "off" } : request, isAsked, budgets),
  };
  const behind: Pick<Messages.MessageCreateParamsStreaming, "stream" | "system" | "tools" | "tool_choice"> = { stream: true };
  if (system.length > 0) behind.system = system;
  if (tools.length > 0) {
    behind.tools = tools;
    if (toolChoice !== undefined) behind.tool_choice = toolChoice;
  }
  const marked = new Set(turns.filter((turn) => turn.role === "user").slice(-MARKED_TURNS));
  const last = turns.map((turn) => {
    if (marked.has(turn)) markLast(turn.content);
    return write(turn);
  });
  const messages = [...parts, ...last];
  if (messages.length === 0)
    messages.push(JSON.stringify({ role: "user", content: [{ type: "text", text: "(empty message)" }] }));
  return { body: bodyOf(before, messages, behind), names };
}

function languageOf({ model, tools, ...request }: ProviderRequest): Language<Turn> {
  return {
    key: `${refusalsSoFar()} ${tools.map(({ name }) => name).join(" ")}`,
    start: () => new Renamings(toolNames({ model, tools, ...request }, 128), new Renaming(64)),
    group: (messages, renamings) => turnsOf(messages, model, renamings),
    write,
    settled,
  };
}

function write({ role, content }: Turn): string {
  return JSON.stringify({ role, content } satisfies Messages.MessageParam);
}

/** The marks move, and what the user says grows until the model answers. */
function settled(turns: readonly Turn[]): number {
  let unmarked = 0;
  for (let index = turns.length - 1; index >= 0; index--) {
    if (turns[index]?.role === "user") unmarked++;
    else if (unmarked >= MARKED_TURNS) return index;
  }
  return unmarked >= MARKED_TURNS ? 0 : -1;
}

function markLast(blocks: object[]): void {
  const place = blocks.findLastIndex((block) => !("type" in block && /thinking/.test(String(block.type))));
  const block = blocks[place];
  if (block !== undefined) blocks[place] = { ...block, cache_control: mark };
}

/**
 * The service forces no tool on a model that thinks: thinking is off for such a request, and where it cannot be turned off the
 * choice is left to the model (platform.claude.com, "Thinking": tool choice; "What's new in Claude Opus 5.5").
 */
function choiceOf({ model, toolChoice, tools }: ProviderRequest, names: Renaming): Messages.ToolChoice | undefined {
  if (toolChoice === "none") return { type: "none" };
  if (toolChoice === undefined || toolChoice === "auto" || (model.reasoning && !/omit|disabled/.test(offOf(model))))
    return undefined;
  if (toolChoice === "required") return { type: "any" };
  return tools.some(({ name }) => name === toolChoice.tool) ? { type: "tool", name: names.to(toolChoice.tool) } : undefined;
}

interface ThinkingParams {
  max_tokens: number;
  thinking?: Messages.ThinkingConfigParam;
  output_config?: Messages.OutputConfig;
}

/** @param isAllowed whether a budget may be asked for now. */
function thinking(request: ProviderRequest, isAllowed: boolean, budgets: Budgets): ThinkingParams {
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
  if (!isAllowed) return { max_tokens: base };
  const wanted = Math.max(budgets[level] ?? defaultBudgets[level], MIN_BUDGET);
  const max = Math.min(base + wanted, limit);
  const budget = max <= wanted ? max - MIN_BUDGET : wanted;
  return budget < MIN_BUDGET ? { max_tokens: base } : { max_tokens: max, thinking: { type: "enabled", budget_tokens: budget } };
}

function thinkingOff(model: Model): Partial<ThinkingParams> {
  const off = offOf(model);
  if (off === "disabled") return { thinking: { type: "disabled" } };
  if (off === "between_tools") return { thinking: { type: "between_tools" } };
  return off === "never" ? { output_config: { effort: "low" } } : {};
}

function offOf(model: Model): NonNullable<NonNullable<Model["thinking"]>["off"]> {
  return model.thinking?.off ?? (model.thinking?.mode === "adaptive" ? "disabled" : "omit");
}

/**
 * With a budget the service insists that a turn still waiting for tool results begins with its thinking. When the turn was begun
 * without (another level or model), thinking pauses until the next turn.
 */
function leadsWithThinking(last: readonly Messages.ContentBlockParam[], asking: readonly Messages.ContentBlockParam[]): boolean {
  if (!last.some((block) => block.type === "tool_result")) return true;
  const first = asking[0]?.type;
  return first === "thinking" || first === "redacted_thinking";
}

async function turnsOf(messages: readonly ModelMessage[], model: Model, renamings: Renamings): Promise<Turn[]> {
  const slices = new Slices();
  const turns: Turn[] = [];
  const silent: ModelMessage[] = [];
  for (const message of messages) {
    if (slices.due) await slices.rest();
    const blocks = blocksOf(message, model, renamings);
    const role = message.role === "assistant" ? "assistant" : "user";
    let turn = turns.at(-1);
    // Results of one turn belong into one message, in front of whatever the user says next.
    if (blocks.length > 0 && (turn?.role !== role || role === "assistant")) {
      turn = { role, messages: silent.splice(0), content: [], mark: renamings.mark() };
      turns.push(turn);
    }
    if (turn === undefined) {
      silent.push(message);
      continue;
    }
    turn.messages.push(message);
    turn.content.push(...blocks);
    turn.mark = renamings.mark();
  }
  return turns;
}

function blocksOf(message: ModelMessage, model: Model, renamings: Renamings): Messages.ContentBlockParam[] {
  if (message.role === "assistant") return assistantBlocks(message, model, renamings);
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
      tool_use_id: renamings.ids.to(message.toolCallId),
      content: blocks.length > 0 ? blocks : [{ type: "text", text: blankResult(message) }],
      ...(message.isError && { is_error: true }),
    },
  ];
}

function assistantBlocks(message: AssistantMessage, model: Model, { names, ids }: Renamings): Messages.ContentBlockParam[] {
  const isFrom = message.api === model.api && message.provider === model.provider && message.model === model.id;
  const isOwn = isFrom && keepsThinking(message);
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
