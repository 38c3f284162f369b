// A conversation as chat completions want it, and what servers of that language do differently.
import {
  type AssistantMessage,
  type Model,
  type ModelMessage,
  type ProviderRequest,
  Slices,
  type ToolResultMessage,
  type UserMessage,
  z,
} from "mortise/extension";
import type { ChatCompletionCreateParamsStreaming, ChatCompletionMessageParam } from "openai/resources/chat/completions";
import { Beginnings, bodyOf, type Group, type Language, Renamings } from "./_beginnings.ts";
import { blankResult, filled, Renaming, readImage, toolNames } from "./_content.ts";

/** `compat` of a model; unknown keys are left to other readers. */
export const OpenAICompat = z.object({
  maxTokensField: z.enum(["max_tokens", "max_completion_tokens"]).optional(),
  supportsDeveloperRole: z.boolean().optional(),
  supportsReasoningEffort: z.boolean().optional(),
  /** False when the server reasons only in requests without tools: then `none` is asked for as soon as there are tools. */
  reasoningWithTools: z.boolean().optional(),
  supportsUsageInStreaming: z.boolean().optional(),
  supportsPromptCacheKey: z.boolean().optional(),
  /** Sends earlier reasoning back as `reasoning_content`; some servers insist on it. */
  replayReasoning: z.boolean().optional(),
  /** Merged into the request body. */
  extraBody: z.record(z.string(), z.unknown()).optional(),
});
export type OpenAICompat = z.infer<typeof OpenAICompat>;

export interface BuiltRequest {
  /** `ChatCompletionCreateParamsStreaming` as JSON. */
  body: Uint8Array;
  names: Renaming;
}

type Part = { type: "text"; text: string } | { type: "image_url"; image_url: { url: string; detail?: "auto" | "low" | "high" } };

/** The service's own server, which knows everything below. */
export function isOfficial(baseUrl: string): boolean {
  return URL.canParse(baseUrl) && new URL(baseUrl).hostname === "api.openai.com";
}

export function compatOf(model: Model, baseUrl: string): OpenAICompat {
  const official = isOfficial(baseUrl);
  const { known } = readCompat(model);
  return {
    maxTokensField: official ? "max_completion_tokens" : "max_tokens",
    supportsDeveloperRole: official && model.reasoning,
    supportsPromptCacheKey: official,
    ...known,
  };
}

/** What is right in the `compat` of a model, and what is wrong with the rest. */
export function readCompat(model: Model): { known: OpenAICompat; problems: string[] } {
  const given = model.compat ?? {};
  const parsed = OpenAICompat.safeParse(given);
  if (parsed.success) return { known: parsed.data, problems: [] };
  const wrong = new Set(parsed.error.issues.map(({ path }) => path[0]));
  const rest = OpenAICompat.safeParse(Object.fromEntries(Object.entries(given).filter(([key]) => !wrong.has(key))));
  const problems = parsed.error.issues.map(({ path, message }) => `compat.${path.join(".")}: ${message}`);
  return { known: rest.data ?? {}, problems };
}

type Behind = Omit<ChatCompletionCreateParamsStreaming, "model" | "messages">;

/** A message and the results that follow it, with their pictures behind them. */
interface Step extends Group {
  readonly messages: ModelMessage[];
  readonly params: ChatCompletionMessageParam[];
  readonly pictures: Part[];
  mark: Group["mark"];
}

const beginnings = new Beginnings<Step>();

/** In slices of time: a context may hold ten thousands of messages. */
export async function buildRequest(request: ProviderRequest, baseUrl: string): Promise<BuiltRequest> {
  const { model } = request;
  const compat = compatOf(model, baseUrl);
  const { parts, groups, renamings } = await beginnings.tell(request, languageOf(request, compat));
  const { names } = renamings;
  const behind: Behind = { stream: true };
  if (compat.supportsUsageInStreaming !== false) behind.stream_options = { include_usage: true };
  const limit = request.maxTokens ?? model.maxTokens;
  if (limit !== undefined) behind[compat.maxTokensField ?? "max_tokens"] = Math.min(limit, model.maxTokens ?? limit);
  const effort = effortOf(request, compat);
  if (effort !== undefined) behind.reasoning_effort = effort;
  if (request.tools.length > 0) {
    behind.tools = request.tools.map((tool) => ({
      type: "function",
      function: { name: names.to(tool.name), description: tool.description, parameters: { ...tool.parameters, type: "object" } },
    }));
    const toolChoice = choiceOf(request, names);
    if (toolChoice !== undefined) behind.tool_choice = toolChoice;
  }
  if (compat.supportsPromptCacheKey && request.sessionId) behind.prompt_cache_key = request.sessionId.slice(0, 64);
  const { messages: _ours, ...extra } = compat.extraBody ?? {};
  const messages = [systemMessage(request, compat), ...parts, ...groups.map(write)].filter((part) => part.length > 0);
  return { body: bodyOf({ model: model.requestModelId ?? model.id }, messages, { ...behind, ...extra }), names };
}

/** One message: the templates of many open models take no second one. */
function systemMessage({ systemPrompt }: ProviderRequest, compat: OpenAICompat): string {
  const content = systemPrompt.filter((text) => text.trim() !== "").join("\n\n");
  const role = compat.supportsDeveloperRole ? "developer" : "system";
  return content === "" ? "" : JSON.stringify({ role, content } satisfies ChatCompletionMessageParam);
}

function languageOf(request: ProviderRequest, compat: OpenAICompat): Language<Step> {
  const { model, tools } = request;
  return {
    key: `${compat.replayReasoning === true} ${tools.map(({ name }) => name).join(" ")}`,
    start: () => new Renamings(toolNames(request, 64), new Renaming(40)),
    group: (messages, renamings) => stepsOf(messages, model, compat, renamings),
    write,
    // More results may follow the last message.
    settled: (steps) => steps.length - 1,
  };
}

function write({ params, pictures }: Step): string {
  const messages = pictures.length === 0 ? params : [...params, { role: "user", content: pictures }];
  return JSON.stringify(messages).slice(1, -1);
}

function choiceOf({ toolChoice, tools }: ProviderRequest, names: Renaming): Behind["tool_choice"] {
  if (toolChoice === undefined || toolChoice === "auto") return undefined;
  if (typeof toolChoice === "string") return toolChoice;
  const isThere = tools.some(({ name }) => name === toolChoice.tool);
  return isThere ? { type: "function", function: { name: names.to(toolChoice.tool) } } : undefined;
}

function effortOf(
  request: ProviderRequest,
  compat: OpenAICompat,
): ChatCompletionCreateParamsStreaming["reasoning_effort"] | undefined {
  const { model, thinkingLevel: level } = request;
  if (compat.reasoningWithTools === false && request.tools.length > 0) return "none";
  if (!model.reasoning || compat.supportsReasoningEffort === false) return undefined;
  if (level !== "off") return level;
  return model.thinking?.off === "disabled" ? "none" : undefined;
}

async function stepsOf(
  messages: readonly ModelMessage[],
  model: Model,
  compat: OpenAICompat,
  renamings: Renamings,
): Promise<Step[]> {
  const slices = new Slices();
  const steps: Step[] = [];
  for (const message of messages) {
    if (slices.due) await slices.rest();
    let step = steps.at(-1);
    if (step === undefined || message.role !== "toolResult") {
      step = { messages: [], params: [], pictures: [], mark: renamings.mark() };
      steps.push(step);
    }
    step.messages.push(message);
    addTo(step, message, model, compat, renamings);
    step.mark = renamings.mark();
  }
  return steps;
}

function addTo(step: Step, message: ModelMessage, model: Model, compat: OpenAICompat, renamings: Renamings): void {
  if (message.role !== "toolResult") {
    const param = message.role === "user" ? userParam(message, model) : assistantParam(message, model, compat, renamings);
    if (param !== undefined) step.params.push(param);
    return;
  }
  const { text, images } = resultParts(message, model);
  step.params.push({ role: "tool", tool_call_id: renamings.ids.to(message.toolCallId), content: text });
  // Results hold text only; their pictures follow once all results of the turn stand.
  if (images.length > 0)
    step.pictures.push({ type: "text", text: `Pictures from the result of ${message.toolName}:` }, ...images);
}

function resultParts(message: ToolResultMessage, model: Model): { text: string; images: Part[] } {
  const parts = filled(message.content).map((block) => partOf(block, model));
  const texts = parts.flatMap((part) => (part.type === "text" ? [part.text] : []));
  const images = parts.filter((part) => part.type === "image_url");
  const text = texts.join("\n") || (images.length > 0 ? "(see the picture below)" : blankResult(message));
  return { text: message.isError ? `Error: ${text}` : text, images };
}

function userParam(message: UserMessage, model: Model): ChatCompletionMessageParam | undefined {
  const parts = filled(message.content).map((block) => partOf(block, model));
  if (parts.length === 0) return undefined;
  const isText = parts.every((part) => part.type === "text");
  return { role: "user", content: isText ? parts.map((part) => part.text).join("\n") : parts };
}

function partOf(block: ReturnType<typeof filled>[number], model: Model): Part {
  if (block.type === "text") return { type: "text", text: block.text };
  const image = readImage(block, model);
  if (typeof image === "string") return { type: "text", text: image };
  const detail = block.detail === "original" ? "high" : block.detail;
  return { type: "image_url", image_url: { url: `data:${image.mimeType};base64,${image.data}`, ...(detail && { detail }) } };
}

function assistantParam(
  message: AssistantMessage,
  model: Model,
  compat: OpenAICompat,
  { names, ids }: Renamings,
): ChatCompletionMessageParam | undefined {
  const text = message.content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("");
  const calls = message.content.flatMap((block) =>
    block.type !== "toolCall"
      ? []
      : [
          {
            id: ids.to(block.id),
            type: "function" as const,
            function: { name: names.to(block.name), arguments: JSON.stringify(block.arguments) },
          },
        ],
  );
  if (text.trim() === "" && calls.length === 0) return undefined;
  const isOwn = message.api === model.api && message.provider === model.provider && message.model === model.id;
  const reasoning = message.content.flatMap((block) => (block.type === "thinking" ? [block.thinking] : [])).join("\n");
  return {
    role: "assistant",
    content: text.trim() === "" ? null : text,
    ...(calls.length > 0 && { tool_calls: calls }),
    ...(compat.replayReasoning && isOwn && reasoning !== "" && { reasoning_content: reasoning }),
  };
}
