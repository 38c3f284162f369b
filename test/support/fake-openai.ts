// A fake of the chat completions API: server-sent events on 127.0.0.1, as strict as the real service where that matters.
import { z } from "zod";
import {
  cut,
  type Dialect,
  type FakeReply,
  type FakeServer,
  hasLoneSurrogate,
  imageProblem,
  type RecordedRequest,
  startFakeServer,
} from "./fake-provider.ts";

export type { FakeReply, FakeServer, FakeToolCall, RecordedRequest, ScriptEntry } from "./fake-provider.ts";

export interface FakeOpenAIOptions {
  /** Requests need no key, as with local servers. */
  keyless?: boolean;
  /** What `/v1/models` lists. */
  models?: readonly string[];
  /** Holds the answer of `/v1/models` back. */
  listing?: Promise<unknown>;
  /** Field that carries reasoning text. */
  reasoningField?: "reasoning_content" | "reasoning";
  /** Refuses `max_tokens`, as the service's reasoning models do. */
  refuseMaxTokens?: boolean;
}

const TextPart = z.strictObject({ type: z.literal("text"), text: z.string() });
const ImagePart = z.strictObject({
  type: z.literal("image_url"),
  image_url: z.strictObject({ url: z.string(), detail: z.enum(["auto", "low", "high"]).optional() }),
});
const TextOnly = z.union([z.string(), z.array(TextPart).min(1)]);
const ToolCallPart = z.strictObject({
  id: z.string().min(1).max(40),
  type: z.literal("function"),
  function: z.strictObject({ name: z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/), arguments: z.string() }),
});
const Message = z.discriminatedUnion("role", [
  z.strictObject({ role: z.literal("system"), content: TextOnly }),
  z.strictObject({ role: z.literal("developer"), content: TextOnly }),
  z.strictObject({
    role: z.literal("user"),
    content: z.union([z.string(), z.array(z.discriminatedUnion("type", [TextPart, ImagePart])).min(1)]),
  }),
  z.strictObject({
    role: z.literal("assistant"),
    content: TextOnly.nullish(),
    tool_calls: z.array(ToolCallPart).min(1).optional(),
    reasoning_content: z.string().optional(),
  }),
  z.strictObject({ role: z.literal("tool"), tool_call_id: z.string(), content: TextOnly }),
]);
const Request = z.strictObject({
  model: z.string().min(1),
  messages: z.array(Message).min(1),
  stream: z.literal(true),
  stream_options: z.strictObject({ include_usage: z.boolean() }).optional(),
  max_tokens: z.number().int().positive().optional(),
  max_completion_tokens: z.number().int().positive().optional(),
  reasoning_effort: z.enum(["none", "minimal", "low", "medium", "high", "xhigh", "max"]).optional(),
  tools: z
    .array(
      z.strictObject({
        type: z.literal("function"),
        function: z.strictObject({
          name: z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/),
          description: z.string().optional(),
          parameters: z.looseObject({ type: z.literal("object") }),
          strict: z.boolean().optional(),
        }),
      }),
    )
    .min(1)
    .optional(),
  tool_choice: z
    .union([
      z.enum(["auto", "none", "required"]),
      z.strictObject({ type: z.literal("function"), function: z.strictObject({ name: z.string() }) }),
    ])
    .optional(),
  prompt_cache_key: z.string().optional(),
  store: z.boolean().optional(),
});
type Request = z.infer<typeof Request>;

/** Why the service refuses a parsed body; undefined when it takes it. */
export function openaiRefusal(body: unknown, options: Pick<FakeOpenAIOptions, "refuseMaxTokens"> = {}): string | undefined {
  if (body === undefined) return "We could not parse the JSON body of your request.";
  if (hasLoneSurrogate(body)) return "We could not parse the JSON body of your request: lone surrogate.";
  const parsed = Request.safeParse(body);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    return `${issue?.path.join(".")}: ${issue?.message}`;
  }
  if (options.refuseMaxTokens && parsed.data.max_tokens !== undefined) {
    return "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
  }
  return problemOf(parsed.data);
}

function problemOf(request: Request): string | undefined {
  if (request.tool_choice !== undefined && request.tools === undefined)
    return "'tool_choice' is only allowed when 'tools' are specified.";
  const { tool_choice: choice } = request;
  if (typeof choice === "object" && !request.tools?.some((tool) => tool.function.name === choice.function.name))
    return `Tool choice '${choice.function.name}' not found in 'tools' parameter.`;
  if (request.max_tokens !== undefined && request.max_completion_tokens !== undefined) {
    return "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.";
  }
  let open: string[] = [];
  for (const [place, message] of request.messages.entries()) {
    const where = `messages.[${place}]`;
    if (message.role === "tool") {
      if (!open.includes(message.tool_call_id)) {
        return `Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls' (${where}).`;
      }
      open = open.filter((id) => id !== message.tool_call_id);
      continue;
    }
    if (open.length > 0) {
      return `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. Missing: ${open.join(", ")} (${where}).`;
    }
    if (message.role === "assistant") {
      if ((message.content === undefined || message.content === null) && !message.tool_calls)
        return `${where}.content: expected a string, got null.`;
      for (const call of message.tool_calls ?? []) {
        if (!isJsonObject(call.function.arguments)) return `${where}.tool_calls: arguments are not a JSON object.`;
      }
      open = (message.tool_calls ?? []).map((call) => call.id);
    }
    if (message.role === "user" && typeof message.content !== "string") {
      for (const part of message.content) {
        const problem = part.type === "image_url" ? urlProblem(part.image_url.url) : undefined;
        if (problem) return `${where}: ${problem}`;
      }
    }
  }
  if (open.length > 0)
    return `An assistant message with 'tool_calls' must be followed by tool messages. Missing: ${open.join(", ")}.`;
  return undefined;
}

function urlProblem(url: string): string | undefined {
  const match = /^data:(image\/(?:png|jpeg|gif|webp));base64,(.*)$/s.exec(url);
  if (!match?.[1]) return "Invalid image URL: expected a data URL of an image.";
  return imageProblem(match[2] ?? "", match[1]);
}

function isJsonObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

const data = (value: object) => `data: ${JSON.stringify(value)}\n\n`;
const stopWords: Record<string, string> = { stop: "stop", length: "length", toolUse: "tool_calls" };
let serial = 0;

function dialectOf(options: FakeOpenAIOptions): Dialect {
  const rendered = new WeakMap<FakeReply, { events: string[]; tail: number }>();
  const errorBody = (type: string, message: string) => JSON.stringify({ error: { message, type, param: null, code: type } });
  const keyMissing = (request: RecordedRequest) =>
    !options.keyless && !/^Bearer (?!bad-key$)\S/.test(request.headers.authorization ?? "");
  return {
    errorBody,
    errorEvent: (type, message) => `data: ${errorBody(type, message)}\n\n`,

    other(request, response) {
      if (request.method !== "GET" || request.path !== "/v1/models") return false;
      const refused = keyMissing(request);
      const list = (options.models ?? []).map((id) => ({ id, object: "model", created: 0, owned_by: "fake" }));
      void Promise.resolve(options.listing).then(() => {
        response.writeHead(refused ? 401 : 200, { "content-type": "application/json" });
        response.end(
          refused ? errorBody("invalid_api_key", "Incorrect API key provided.") : JSON.stringify({ object: "list", data: list }),
        );
      });
      return true;
    },

    refuse(request) {
      const invalid = (message: string) => ({ status: 400, type: "invalid_request_error", message });
      if (request.method !== "POST" || request.path !== "/v1/chat/completions") {
        return { status: 404, type: "not_found", message: `Invalid URL (${request.method} ${request.path})` };
      }
      if (keyMissing(request)) return { status: 401, type: "invalid_api_key", message: "You didn't provide an API key." };
      const problem = openaiRefusal(request.body, options);
      return problem === undefined ? undefined : invalid(problem);
    },

    render(reply, request) {
      let result = rendered.get(reply);
      if (!result) {
        result = renderReply(reply, request, options.reasoningField ?? "reasoning_content");
        rendered.set(reply, result);
      }
      return result;
    },
  };
}

function renderReply(reply: FakeReply, request: RecordedRequest, reasoningField: string): { events: string[]; tail: number } {
  const body = request.body as Request;
  const base = { id: `chatcmpl-${++serial}`, object: "chat.completion.chunk", created: 0, model: body.model };
  const chunk = (delta: object, finish: string | null = null) =>
    data({ ...base, choices: [{ index: 0, delta, finish_reason: finish }] });
  const events = [chunk({ role: "assistant", content: "" })];
  for (const piece of cut(reply.thinking ?? "", reply.chunk)) events.push(chunk({ [reasoningField]: piece }));
  for (const piece of cut(reply.text ?? "", reply.chunk)) events.push(chunk({ content: piece }));
  for (const [index, call] of (reply.toolCalls ?? []).entries()) {
    const json = call.json ?? JSON.stringify(call.arguments ?? {});
    const id = call.id ?? `call_${++serial}`;
    events.push(chunk({ tool_calls: [{ index, id, type: "function", function: { name: call.name, arguments: "" } }] }));
    for (const piece of cut(json, call.chunk)) events.push(chunk({ tool_calls: [{ index, function: { arguments: piece } }] }));
  }
  const stop = reply.stop ?? (reply.toolCalls?.length ? "toolUse" : "stop");
  events.push(chunk({}, stopWords[stop] ?? stop));
  if (body.stream_options?.include_usage) {
    const { input = 10, output = 5, cacheRead = 0, reasoning } = reply.usage ?? {};
    events.push(
      data({
        ...base,
        choices: [],
        usage: {
          prompt_tokens: input + cacheRead,
          completion_tokens: output,
          total_tokens: input + cacheRead + output,
          prompt_tokens_details: { cached_tokens: cacheRead },
          ...(reasoning !== undefined && { completion_tokens_details: { reasoning_tokens: reasoning } }),
        },
      }),
    );
  }
  events.push("data: [DONE]\n\n");
  return { events, tail: body.stream_options?.include_usage ? 3 : 2 };
}

/** Starts a fake of a chat completions server. Its base URL for clients is `<url>/v1`. */
export function startFakeOpenAI(options: FakeOpenAIOptions = {}): Promise<FakeServer> {
  return startFakeServer(dialectOf(options));
}
