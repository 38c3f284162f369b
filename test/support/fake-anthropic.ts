// A fake of the Messages API: server-sent events on 127.0.0.1, as strict as the real service where that matters.
import { createHash } from "node:crypto";
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

const cacheControl = z.strictObject({ type: z.literal("ephemeral"), ttl: z.enum(["5m", "1h"]).optional() });
const cached = { cache_control: cacheControl.optional() };
const Text = z.strictObject({ type: z.literal("text"), text: z.string(), ...cached });
const Image = z.strictObject({
  type: z.literal("image"),
  source: z.strictObject({
    type: z.literal("base64"),
    media_type: z.enum(["image/png", "image/jpeg", "image/gif", "image/webp"]),
    data: z.string(),
  }),
  ...cached,
});
const callId = z.string().regex(/^[a-zA-Z0-9_-]+$/);
const ToolUse = z.strictObject({
  type: z.literal("tool_use"),
  id: callId,
  name: z.string().regex(/^[a-zA-Z0-9_-]{1,200}$/),
  input: z.record(z.string(), z.unknown()),
  ...cached,
});
const ToolResult = z.strictObject({
  type: z.literal("tool_result"),
  tool_use_id: callId,
  content: z.union([z.string(), z.array(z.discriminatedUnion("type", [Text, Image]))]).optional(),
  is_error: z.boolean().optional(),
  ...cached,
});
const Thinking = z.strictObject({ type: z.literal("thinking"), thinking: z.string(), signature: z.string().min(1) });
const Redacted = z.strictObject({ type: z.literal("redacted_thinking"), data: z.string().min(1) });
const Block = z.discriminatedUnion("type", [Text, Image, ToolUse, ToolResult, Thinking, Redacted]);
type Block = z.infer<typeof Block>;

const Request = z.strictObject({
  model: z.string().min(1),
  max_tokens: z.number().int().positive(),
  stream: z.literal(true),
  messages: z
    .array(z.strictObject({ role: z.enum(["user", "assistant"]), content: z.union([z.string(), z.array(Block)]) }))
    .min(1),
  system: z.union([z.string(), z.array(Text)]).optional(),
  tools: z
    .array(
      z.strictObject({
        name: z.string().regex(/^[a-zA-Z0-9_-]{1,128}$/),
        description: z.string().optional(),
        input_schema: z.looseObject({ type: z.literal("object") }),
        ...cached,
      }),
    )
    .optional(),
  tool_choice: z
    .discriminatedUnion("type", [
      z.strictObject({ type: z.enum(["auto", "any", "none"]) }),
      z.strictObject({ type: z.literal("tool"), name: z.string() }),
    ])
    .optional(),
  thinking: z
    .discriminatedUnion("type", [
      z.strictObject({ type: z.literal("enabled"), budget_tokens: z.number().int().min(1024) }),
      z.strictObject({ type: z.literal("adaptive"), display: z.enum(["summarized", "omitted"]).optional() }),
      z.strictObject({ type: z.literal("disabled") }),
      z.strictObject({ type: z.literal("between_tools") }),
    ])
    .optional(),
  output_config: z.strictObject({ effort: z.enum(["low", "medium", "high", "xhigh", "max"]) }).optional(),
  temperature: z.number().optional(),
  metadata: z.strictObject({ user_id: z.string() }).optional(),
});
type Request = z.infer<typeof Request>;

/** Why the service refuses a parsed body; undefined when it takes it. */
export function anthropicRefusal(body: unknown): string | undefined {
  if (body === undefined) return "The request body is not valid JSON";
  if (hasLoneSurrogate(body)) return "The request body is not valid JSON: lone surrogate in string";
  const parsed = Request.safeParse(body);
  if (parsed.success) return problemOf(parsed.data);
  const issue = parsed.error.issues[0];
  return `${issue?.path.join(".")}: ${issue?.message}`;
}

/** What the real service answers 400 to, in this order; undefined when the request is fine. */
function problemOf(request: Request): string | undefined {
  const seen = new Set<string>();
  const names = (request.tools ?? []).map((tool) => tool.name);
  if (new Set(names).size !== names.length) return "tools: Tool names must be unique.";
  const { thinking } = request;
  const choice = choiceProblem(request, names);
  if (choice) return choice;
  if (thinking?.type === "enabled" && thinking.budget_tokens >= request.max_tokens) {
    return "`max_tokens` must be greater than `thinking.budget_tokens`";
  }
  if (thinking && thinking.type !== "disabled" && request.temperature !== undefined && request.temperature !== 1) {
    return "`temperature` may only be set to 1 when thinking is enabled";
  }
  if (typeof request.system === "string" ? request.system === "" : request.system?.some((block) => block.text === "")) {
    return "system: text content blocks must be non-empty";
  }
  if (countMarks(request) > 4) return `A maximum of 4 blocks with cache_control may be provided. Found ${countMarks(request)}.`;
  if (request.messages[0]?.role !== "user") return 'messages: first message must use the "user" role';
  const turns = mergeTurns(request);
  for (const [place, turn] of turns.entries()) {
    const where = `messages.${place}`;
    if (turn.blocks.length === 0) return `${where}: all messages must have non-empty content`;
    const problem = turn.blocks
      .map((block, n) => blockProblem(block, `${where}.content.${n}`))
      .find((text) => text !== undefined);
    if (problem) return problem;
    const pairing = pairingProblem(turns, place, where, seen);
    if (pairing) return pairing;
  }
  const last = turns.at(-1);
  if (last?.role === "assistant")
    return "This model does not support assistant message prefill. The conversation must end with a user message.";
  if (thinking?.type === "enabled") return thinkingProblem(turns);
  return undefined;
}

/** Thinking and forced calls exclude each other, and the models that always think take no forced call at all. */
function choiceProblem({ model, tool_choice: choice, thinking }: Request, names: readonly string[]): string | undefined {
  if (choice === undefined) return undefined;
  if (names.length === 0) return "tool_choice may only be specified while providing tools.";
  if (choice.type === "tool" && !names.includes(choice.name)) return `Tool '${choice.name}' not found in provided tools`;
  if (choice.type === "auto" || choice.type === "none") return undefined;
  if (/(?:opus|sonnet)-5-5|fable/.test(model)) return "tool_choice: forced tool use is not supported for this model.";
  const isThinking = thinking === undefined ? /(?:opus|sonnet)-5/.test(model) : thinking.type !== "disabled";
  return isThinking ? "Thinking may not be enabled when tool_choice forces tool use." : undefined;
}

interface Turn {
  role: "user" | "assistant";
  blocks: Block[];
}

/** The service joins consecutive messages of one role. */
function mergeTurns(request: Request): Turn[] {
  const turns: Turn[] = [];
  for (const { role, content } of request.messages) {
    const blocks: Block[] = typeof content === "string" ? [{ type: "text", text: content }] : content;
    const last = turns.at(-1);
    if (last?.role === role) last.blocks.push(...blocks);
    else turns.push({ role, blocks: [...blocks] });
  }
  return turns;
}

function blockProblem(block: Block, where: string): string | undefined {
  if (block.type === "text") {
    if (block.text === "") return `${where}: text content blocks must be non-empty`;
    if (block.text.trim() === "") return `${where}: text content blocks must contain non-whitespace text`;
  }
  if (block.type === "image") {
    const problem = imageProblem(block.source.data, block.source.media_type);
    if (problem) return `${where}.image.source.base64: ${problem}`;
  }
  if (block.type === "tool_result" && typeof block.content !== "string") {
    for (const [place, inner] of (block.content ?? []).entries()) {
      const problem = blockProblem(inner, `${where}.tool_result.content.${place}`);
      if (problem) return problem;
    }
  }
  return undefined;
}

function pairingProblem(turns: readonly Turn[], place: number, where: string, seen: Set<string>): string | undefined {
  const turn = turns[place];
  if (!turn) return undefined;
  const previous = turns[place - 1];
  const calls = turn.blocks.flatMap((block) => (block.type === "tool_use" ? [block.id] : []));
  const results = turn.blocks.flatMap((block) => (block.type === "tool_result" ? [block.tool_use_id] : []));
  if (turn.role === "user" && calls.length > 0) return `${where}: \`tool_use\` blocks can only be in \`assistant\` messages`;
  if (turn.role === "user" && turn.blocks.some((block) => block.type === "thinking" || block.type === "redacted_thinking")) {
    return `${where}: \`thinking\` blocks can only be in \`assistant\` messages`;
  }
  if (turn.role === "assistant" && results.length > 0) return `${where}: \`tool_result\` blocks can only be in \`user\` messages`;
  for (const id of calls) {
    if (seen.has(id)) return `${where}: \`tool_use\` ids must be unique`;
    seen.add(id);
  }
  const asked = previous?.blocks.flatMap((block) => (block.type === "tool_use" ? [block.id] : [])) ?? [];
  const stray = results.find((id) => !asked.includes(id));
  if (stray !== undefined) return `${where}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${stray}`;
  if (new Set(results).size !== results.length) return `${where}: each tool_use must have a single result`;
  const firstOther = turn.blocks.findIndex((block) => block.type !== "tool_result");
  const lastResult = turn.blocks.findLastIndex((block) => block.type === "tool_result");
  if (results.length > 0 && firstOther >= 0 && firstOther < lastResult) return `${where}: \`tool_result\` blocks must come first`;
  if (turn.role === "user") {
    const missing = asked.filter((id) => !results.includes(id));
    if (missing.length > 0) return `${where}: \`tool_use\` ids were found without \`tool_result\` blocks: ${missing.join(", ")}`;
  }
  return undefined;
}

/** With a thinking budget the turn that calls tools has to begin with the thinking that led to it. */
function thinkingProblem(turns: readonly Turn[]): string | undefined {
  const results = turns.at(-1)?.blocks.some((block) => block.type === "tool_result");
  const asking = turns.at(-2);
  const first = asking?.blocks[0]?.type;
  if (!results || asking?.role !== "assistant" || first === "thinking" || first === "redacted_thinking") return undefined;
  return `messages.${turns.length - 2}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${first}\``;
}

function countMarks(request: Request): number {
  let count = 0;
  const add = (block: object) => {
    if ("cache_control" in block && block.cache_control !== undefined) count++;
  };
  for (const tool of request.tools ?? []) add(tool);
  if (typeof request.system !== "string") for (const block of request.system ?? []) add(block);
  for (const message of request.messages)
    if (typeof message.content !== "string") for (const block of message.content) add(block);
  return count;
}

/** What stands in front of a message, as newer models sign it into their thinking. Cache marks are no part of it. */
function prefixOf({ system, tools, messages }: Request, end: number): string {
  const text = JSON.stringify([system, tools, messages.slice(0, end)], (key, value) =>
    key === "cache_control" ? undefined : value,
  );
  return createHash("sha256").update(text).digest("base64");
}

function bindingProblem(request: Request): string | undefined {
  for (const [place, { content }] of request.messages.entries()) {
    for (const [n, block] of (typeof content === "string" ? [] : content).entries()) {
      if (block.type !== "thinking" || block.signature === prefixOf(request, place)) continue;
      return `messages.${place}.content.${n}: Invalid \`signature\` in \`thinking\` block. The block is bound to a different conversation. Remove the block, or set \`thinking.block_binding.prefix_mismatch_behavior\` to "drop_block".`;
    }
  }
  return undefined;
}

const data = (value: { type: string; [field: string]: unknown }) => `event: ${value.type}\ndata: ${JSON.stringify(value)}\n\n`;
const stopWords: Record<string, string> = { stop: "end_turn", length: "max_tokens", toolUse: "tool_use" };

const dialect: Dialect = {
  errorBody: (type, message) => JSON.stringify({ type: "error", error: { type, message }, request_id: "req_fake" }),
  errorEvent: (type, message) => data({ type: "error", error: { type, message } }),

  refuse(request) {
    const invalid = (message: string, status = 400) => ({ status, type: "invalid_request_error", message });
    if (request.method !== "POST" || request.path.split("?")[0] !== "/v1/messages") {
      return { status: 404, type: "not_found_error", message: `Not found: ${request.method} ${request.path}` };
    }
    if (!request.headers["x-api-key"] && !/^Bearer \S/.test(request.headers.authorization ?? "")) {
      return { status: 401, type: "authentication_error", message: "x-api-key header is required" };
    }
    if (!["2023-06-01", "2026-10-21"].includes(String(request.headers["anthropic-version"]))) {
      return invalid("anthropic-version: header is required");
    }
    const problem = anthropicRefusal(request.body);
    return problem === undefined ? undefined : invalid(problem);
  },

  other(request, response) {
    if (request.method !== "GET" || !request.path.startsWith("/v1/models")) return false;
    const known = request.headers["x-api-key"] !== undefined && request.headers["x-api-key"] !== "bad-key";
    response.writeHead(known ? 200 : 401, { "content-type": "application/json" });
    response.end(
      known ? JSON.stringify({ data: [], has_more: false }) : dialect.errorBody("authentication_error", "invalid x-api-key"),
    );
    return true;
  },

  render(reply, request) {
    const known = rendered.get(reply);
    if (known) return known;
    const result = renderReply(reply, request);
    rendered.set(reply, result);
    return result;
  },
};

/** Replies that are played many times are rendered once. */
const rendered = new WeakMap<FakeReply, { events: string[]; tail: number }>();
let serial = 0;

function renderReply(reply: FakeReply, request: RecordedRequest): { events: string[]; tail: number } {
  const usage = {
    input_tokens: reply.usage?.input ?? 10,
    cache_read_input_tokens: reply.usage?.cacheRead ?? 0,
    cache_creation_input_tokens: reply.usage?.cacheWrite ?? 0,
  };
  const model = String((request.body as { model?: unknown }).model);
  const events = [
    data({
      type: "message_start",
      message: {
        id: `msg_${++serial}`,
        type: "message",
        role: "assistant",
        model,
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: { ...usage, output_tokens: 1 },
      },
    }),
    data({ type: "ping" }),
  ];
  let index = 0;
  const block = (start: object, deltas: object[], unclosed = false) => {
    events.push(data({ type: "content_block_start", index, content_block: start }));
    for (const delta of deltas) events.push(data({ type: "content_block_delta", index, delta }));
    if (!unclosed) events.push(data({ type: "content_block_stop", index }));
    index++;
  };
  if (reply.thinking !== undefined) {
    block({ type: "thinking", thinking: "", signature: "" }, [
      ...cut(reply.thinking, reply.chunk).map((thinking) => ({ type: "thinking_delta", thinking })),
      { type: "signature_delta", signature: reply.signature ?? "c2lnbmVk" },
    ]);
  }
  if (reply.redactedThinking !== undefined) block({ type: "redacted_thinking", data: reply.redactedThinking }, []);
  if (reply.text !== undefined) {
    block(
      { type: "text", text: "" },
      cut(reply.text, reply.chunk).map((text) => ({ type: "text_delta", text })),
    );
  }
  for (const call of reply.toolCalls ?? []) {
    const json = call.json ?? JSON.stringify(call.arguments ?? {});
    block(
      { type: "tool_use", id: call.id ?? `toolu_${++serial}`, name: call.name, input: {} },
      cut(json, call.chunk).map((partial_json) => ({ type: "input_json_delta", partial_json })),
      call.unclosed,
    );
  }
  const stop = reply.stop ?? (reply.toolCalls?.length ? "toolUse" : "stop");
  events.push(
    data({
      type: "message_delta",
      delta: { stop_reason: stopWords[stop] ?? stop, stop_sequence: null },
      usage: {
        output_tokens: reply.usage?.output ?? 5,
        ...(reply.usage?.reasoning !== undefined && { output_tokens_details: { thinking_tokens: reply.usage.reasoning } }),
      },
    }),
    data({ type: "message_stop" }),
  );
  return { events, tail: 2 };
}

/** As the service's newer models: thinking comes back behind exactly what stood in front of it, or the request is refused. */
const binding: Dialect = {
  ...dialect,
  refuse(request) {
    const refusal = dialect.refuse(request);
    const message = refusal ? undefined : bindingProblem(Request.parse(request.body));
    return refusal ?? (message === undefined ? undefined : { status: 400, type: "invalid_request_error", message });
  },
  render(reply, request) {
    const body = Request.parse(request.body);
    return renderReply({ ...reply, signature: prefixOf(body, body.messages.length) }, request);
  },
};

/** Starts a fake of the Messages API. `url` is the base URL for ANTHROPIC_BASE_URL or models.yml. */
export function startFakeAnthropic(options: { bindsThinking?: boolean } = {}): Promise<FakeServer> {
  return startFakeServer(options.bindsThinking ? binding : dialect);
}
