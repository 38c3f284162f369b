// Between the families' model streams and ours, in both directions: a provider that an extension brings, and an answer that an
// extension asks one of our providers for.
import {
  type AssistantContent,
  type AssistantMessage,
  type Context,
  errorMessage,
  type Model,
  Models,
  ProviderError,
  type ProviderEvent,
  type ProviderRequest,
  ThinkingLevel,
  type TokenCounts,
  type Usage,
} from "mortise/extension";
import { AssistantMessageEventStream, type StreamEvent } from "./_event-stream.ts";
import { convertToLlm } from "./_messages.ts";
import { toPromptBlocks } from "./_results.ts";
import { isObject, toJsonSchema } from "./_schema.ts";

/** The families' event → ours. The last event is always `done` or `error`. */
export async function* fromForeignStream(stream: AsyncIterable<unknown>): AsyncGenerator<ProviderEvent> {
  yield { type: "start" };
  for await (const event of stream) {
    if (!isObject(event)) continue;
    if (event["type"] === "done" || event["type"] === "error") {
      yield* finalEvents(event);
      return;
    }
    const ours = fromForeignEvent(event);
    if (ours !== undefined) yield ours;
  }
}

function fromForeignEvent(event: Record<string, unknown>): ProviderEvent | undefined {
  const index = typeof event["contentIndex"] === "number" ? event["contentIndex"] : 0;
  const delta = typeof event["delta"] === "string" ? event["delta"] : "";
  switch (event["type"]) {
    case "text_start":
    case "text_end":
    case "thinking_start":
    case "thinking_end":
      return { type: event["type"], index };
    case "text_delta":
    case "thinking_delta":
    case "toolcall_delta":
      return { type: event["type"], index, delta };
    case "toolcall_start": {
      const call = blockAt(event["partial"], index);
      return { type: "toolcall_start", index, id: String(call["id"] ?? `call_${index}`), name: String(call["name"] ?? "") };
    }
    case "toolcall_end": {
      const call = isObject(event["toolCall"]) ? event["toolCall"] : blockAt(event["partial"], index);
      return { type: "toolcall_end", index, ...(isObject(call["arguments"]) ? { arguments: call["arguments"] } : {}) };
    }
    default:
      return undefined;
  }
}

function blockAt(partial: unknown, index: number): Record<string, unknown> {
  const content = isObject(partial) ? partial["content"] : undefined;
  const block: unknown = Array.isArray(content) ? content[index] : undefined;
  return isObject(block) ? block : {};
}

function* finalEvents(event: Record<string, unknown>): Generator<ProviderEvent> {
  const message = isObject(event["message"]) ? event["message"] : isObject(event["error"]) ? event["error"] : {};
  const usage = usageOf(message["usage"]);
  if (usage !== undefined) yield { type: "usage", usage };
  if (event["type"] === "error") {
    const text = typeof message["errorMessage"] === "string" ? message["errorMessage"] : "The provider failed without a reason";
    const aborted = event["reason"] === "aborted" || message["stopReason"] === "aborted";
    yield { type: "error", error: new ProviderError(text, aborted ? "aborted" : "fatal") };
    return;
  }
  const { reason } = event;
  yield { type: "done", stopReason: reason === "length" || reason === "toolUse" ? reason : "stop" };
}

function usageOf(usage: unknown): Partial<TokenCounts> | undefined {
  if (!isObject(usage)) return undefined;
  const counts: Partial<TokenCounts> = {};
  for (const key of ["input", "output", "cacheRead", "cacheWrite", "reasoningTokens"] as const) {
    const value = usage[key];
    if (typeof value === "number" && value >= 0) counts[key] = value;
  }
  return counts;
}

/** What the families' stream functions take besides the model. */
export function toForeignContext(request: ProviderRequest, promptBlocks: boolean): Record<string, unknown> {
  return {
    systemPrompt: promptBlocks ? [...request.systemPrompt] : request.systemPrompt.join("\n\n"),
    messages: [...request.messages],
    tools: request.tools.map((tool) => ({ ...tool })),
  };
}

export function toForeignOptions(request: ProviderRequest): Record<string, unknown> {
  return {
    signal: request.signal,
    apiKey: request.apiKey,
    headers: request.headers,
    maxTokens: request.maxTokens ?? request.model.maxTokens,
    sessionId: request.sessionId,
    ...(request.thinkingLevel === "off" ? {} : { reasoning: request.thinkingLevel }),
  };
}

/** Asks one of our providers on behalf of an extension (`complete`, `stream` of pi-ai). Never throws: failures are events. */
export function streamModel(ctx: Context, model: Model, context: unknown, options: unknown): AssistantMessageEventStream {
  const stream = new AssistantMessageEventStream();
  const message = emptyMessage(model);
  pump(ctx, model, context, options, message, stream).catch((error: unknown) => fail(stream, message, error, false));
  return stream;
}

async function pump(
  ctx: Context,
  model: Model,
  context: unknown,
  options: unknown,
  message: AssistantMessage,
  stream: AssistantMessageEventStream,
): Promise<void> {
  const entry = ctx.registry.get("provider", model.api);
  if (entry === undefined) throw new ProviderError(`No provider is loaded for the API "${model.api}"`, "fatal");
  const release = entry.scope.lease();
  try {
    stream.push({ type: "start", partial: message });
    const request = await requestOf(ctx, model, context, options);
    for await (const event of entry.definition.stream(request, ctx)) {
      if (event.type === "error") return fail(stream, message, event.error, event.error.kind === "aborted");
      if (event.type === "done") {
        message.stopReason = event.stopReason;
        return stream.push({ type: "done", reason: event.stopReason, message });
      }
      for (const foreign of fold(message, event)) stream.push(foreign);
    }
    fail(stream, message, new Error("The stream of the provider was cut"), false);
  } finally {
    release();
  }
}

async function requestOf(ctx: Context, model: Model, context: unknown, options: unknown): Promise<ProviderRequest> {
  const given = isObject(options) ? options : {};
  const { systemPrompt, messages, tools } = isObject(context) ? context : {};
  const key = typeof given["apiKey"] === "string" ? { apiKey: given["apiKey"] } : await ctx.use(Models).key(model);
  const level = ThinkingLevel.safeParse(given["reasoning"]);
  return {
    model,
    systemPrompt: toPromptBlocks(systemPrompt) ?? [],
    messages: convertToLlm(messages),
    tools: (Array.isArray(tools) ? tools : []).filter(isObject).map((tool) => ({
      name: String(tool["name"]),
      description: String(tool["description"] ?? ""),
      parameters: toJsonSchema(tool["parameters"]),
    })),
    thinkingLevel: ctx.use(Models).clamp(model, level.success ? level.data : "off"),
    signal: given["signal"] instanceof AbortSignal ? given["signal"] : ctx.signal,
    ...key,
    ...(typeof given["maxTokens"] === "number" ? { maxTokens: given["maxTokens"] } : {}),
  };
}

function fail(stream: AssistantMessageEventStream, message: AssistantMessage, error: unknown, aborted: boolean): void {
  message.stopReason = aborted ? "aborted" : "error";
  message.errorMessage = errorMessage(error);
  stream.push({ type: "error", reason: message.stopReason, error: message });
  stream.end(message);
}

/** Takes an event into the message and gives the families' events for it. Blocks keep the provider's index. */
function fold(message: AssistantMessage, event: ProviderEvent): StreamEvent[] {
  const partial = message;
  switch (event.type) {
    case "text_start":
      return started(message, event.index, { type: "text", text: "" }, "text_start");
    case "thinking_start":
      return started(message, event.index, { type: "thinking", thinking: "" }, "thinking_start");
    case "toolcall_start":
      return started(message, event.index, { type: "toolCall", id: event.id, name: event.name, arguments: {} }, "toolcall_start");
    case "text_delta": {
      const block = message.content[event.index];
      if (block?.type === "text") block.text += event.delta;
      return [{ type: event.type, contentIndex: event.index, delta: event.delta, partial }];
    }
    case "thinking_delta": {
      const block = message.content[event.index];
      if (block?.type === "thinking") block.thinking += event.delta;
      return [{ type: event.type, contentIndex: event.index, delta: event.delta, partial }];
    }
    case "toolcall_delta":
      return [{ type: event.type, contentIndex: event.index, delta: event.delta, partial }];
    case "text_end":
    case "thinking_end": {
      const block = message.content[event.index];
      const content = block?.type === "text" ? block.text : block?.type === "thinking" ? block.thinking : "";
      return [{ type: event.type, contentIndex: event.index, content, partial }];
    }
    case "toolcall_end": {
      const block = message.content[event.index];
      if (block?.type === "toolCall" && event.arguments !== undefined) block.arguments = event.arguments;
      return [{ type: event.type, contentIndex: event.index, toolCall: block, partial }];
    }
    case "usage":
      Object.assign(message.usage, event.usage);
      message.usage.totalTokens = message.usage.input + message.usage.output + message.usage.cacheRead + message.usage.cacheWrite;
      return [];
    default:
      return [];
  }
}

function started(message: AssistantMessage, index: number, block: AssistantContent, type: string): StreamEvent[] {
  message.content[index] = block;
  return [{ type, contentIndex: index, partial: message }];
}

function emptyMessage(model: Model): AssistantMessage {
  return {
    role: "assistant",
    content: [],
    api: model.api,
    provider: model.provider,
    model: model.id,
    usage: emptyUsage(),
    stopReason: "stop",
    timestamp: Date.now(),
  };
}

export function emptyUsage(): Usage {
  return {
    input: 0,
    output: 0,
    cacheRead: 0,
    cacheWrite: 0,
    totalTokens: 0,
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
  };
}
