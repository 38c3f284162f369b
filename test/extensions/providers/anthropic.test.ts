import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { AssistantMessage, Model, ModelMessage, ProviderRequest, ToolSchema } from "mortise/extension";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import anthropic from "../../../extensions/providers/anthropic.ts";
import transport from "../../../extensions/providers/transport.ts";
import { type FakeReply, type FakeServer, startFakeAnthropic } from "../../support/fake-anthropic.ts";
import { collect, failureOf, joined, providerContext, providerOf, requestOf } from "../../support/provider-context.ts";

const provider = providerOf(anthropic);
const bash: ToolSchema = {
  name: "bash",
  description: "Runs a command",
  parameters: { type: "object", properties: { command: { type: "string" } } },
};
const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const usage = {
  input: 0,
  output: 0,
  cacheRead: 0,
  cacheWrite: 0,
  totalTokens: 0,
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
};

let fake: FakeServer;
let model: Model;

beforeEach(async () => {
  fake = await startFakeAnthropic();
  model = {
    id: "claude-test",
    name: "Claude Test",
    api: "anthropic-messages",
    provider: "anthropic",
    baseUrl: fake.url,
    reasoning: true,
    input: ["text", "image"],
    cost: { input: 1, output: 5, cacheRead: 0.1, cacheWrite: 1.25 },
    contextWindow: 200_000,
    maxTokens: 64_000,
    thinking: { mode: "budget", efforts: ["minimal", "low", "medium", "high", "xhigh"], off: "omit" },
  };
});
afterEach(() => fake.close());

const contextWith = (settings: Record<string, unknown> = {}, env: NodeJS.ProcessEnv = {}) =>
  providerContext({
    definitions: transport,
    settings,
    services: { launch: { home: "/nowhere", cwd: "/", options: {}, env } },
  });
const run = (reply: FakeReply, change: Partial<ProviderRequest> & { text?: string } = {}, ctx = contextWith()) => {
  fake.script(reply);
  return collect(provider.stream(requestOf(model, { tools: [bash], ...change }), ctx));
};
const assistant = (content: AssistantMessage["content"], change: Partial<AssistantMessage> = {}): AssistantMessage => ({
  role: "assistant",
  content,
  api: "anthropic-messages",
  provider: "anthropic",
  model: "claude-test",
  usage,
  stopReason: "toolUse",
  timestamp: 1,
  ...change,
});
const user = (content: string): ModelMessage => ({ role: "user", content, timestamp: 1 });
const result = (toolCallId: string, text: string, isError = false): ModelMessage => ({
  role: "toolResult",
  toolCallId,
  toolName: "bash",
  content: [{ type: "text", text }],
  isError,
  timestamp: 1,
});
const body = (n = 0) => fake.requests[n]?.body as Record<string, unknown>;

describe("anthropic: a complete answer", () => {
  it("streams thinking, text and tool calls in order, with usage and the message id", async () => {
    const events = await run(
      {
        thinking: "let me see",
        signature: "sig",
        redactedThinking: "hidden",
        text: "Looking Ä😀",
        chunk: 4,
        toolCalls: [{ id: "t1", name: "bash", arguments: { command: "ls -l" }, chunk: 5 }],
        usage: { input: 100, output: 20, cacheRead: 7, cacheWrite: 3, reasoning: 4 },
      },
      { thinkingLevel: "low" },
    );
    expect(fake.requests[0]?.refusal).toBeUndefined();
    expect(joined(events, "thinking_delta")).toBe("let me see");
    expect(joined(events, "text_delta")).toBe("Looking Ä😀");
    expect(joined(events, "toolcall_delta")).toBe('{"command":"ls -l"}');
    expect(events.filter((event) => !event.type.endsWith("_delta"))).toEqual([
      { type: "start", responseId: expect.stringMatching(/^msg_/) },
      { type: "usage", usage: { input: 100, output: 1, cacheRead: 7, cacheWrite: 3 } },
      { type: "thinking_start", index: 0 },
      { type: "thinking_end", index: 0, signature: "sig" },
      { type: "redacted_thinking", index: 1, data: "hidden" },
      { type: "text_start", index: 2 },
      { type: "text_end", index: 2 },
      { type: "toolcall_start", index: 3, id: "t1", name: "bash" },
      { type: "toolcall_end", index: 3, arguments: { command: "ls -l" } },
      { type: "usage", usage: { output: 20, reasoningTokens: 4 } },
      { type: "done", stopReason: "toolUse" },
    ]);
  });

  it("reuses the connection for the next request", async () => {
    const ctx = contextWith();
    for (const text of ["one", "two", "three", "4", "5", "6"]) {
      const events = await run({ text }, {}, ctx);
      expect(events.at(-1)).toEqual({ type: "done", stopReason: "stop" });
    }
    // The pool may open a second one while it takes the first back.
    expect(fake.connections).toBeLessThanOrEqual(2);
  });

  it("runs a call without arguments with {} and reports a limit as length (case 20.5, 20.4)", async () => {
    const empty = await run({ toolCalls: [{ id: "a", name: "bash", json: "" }] });
    expect(empty).toContainEqual({ type: "toolcall_end", index: 0, arguments: {} });
    expect(empty.at(-1)).toEqual({ type: "done", stopReason: "toolUse" });

    const cut = await run({
      toolCalls: [
        { id: "a", name: "bash", arguments: { command: "true" } },
        { id: "b", name: "bash", json: '{"command":"rm -rf ./build/tmp' },
      ],
      stop: "length",
    });
    expect(cut.filter((event) => event.type === "toolcall_end")).toEqual([
      { type: "toolcall_end", index: 0, arguments: { command: "true" } },
    ]);
    expect(cut.at(-1)).toEqual({ type: "done", stopReason: "length" });

    const cutEmpty = await run({ toolCalls: [{ id: "a", name: "bash", json: "" }], stop: "length" });
    expect(cutEmpty.map((event) => event.type)).not.toContain("toolcall_end");
  });
});

describe("anthropic: broken streams (case 20)", () => {
  const half = { toolCalls: [{ id: "a", name: "bash", json: '{"command":"rm -rf ./build/tmp', chunk: 6 }] } satisfies FakeReply;

  it.each<[string, FakeReply]>([
    ["20.1 the socket is destroyed in the arguments", { ...half, cutAfter: 6, cut: "destroy" }],
    ["20.2 a clean end in the arguments", { ...half, cutAfter: 6, cut: "end" }],
    [
      "20.3 a stop event without the end of the arguments",
      { toolCalls: [{ ...half.toolCalls[0], name: "bash", unclosed: true }] },
    ],
    ["20.3 a stop event with half the arguments", half],
    ["a second message_start", { raw: { writes: [start(), blockStart(), start()] } }],
    ["20.5 a stop on tool use without a call", { text: "hm", stop: "tool_use" }],
    ["20.6 malformed JSON", { raw: { writes: [start(), "event: content_block_start\ndata: {bad\n\n"] } }],
    ["20.7 an empty body", { raw: { writes: [] } }],
    ["20.7 a web page", { raw: { headers: { "content-type": "text/html" }, writes: ["<html><body>Sign in</body></html>"] } }],
    [
      "20.7 an error event after three deltas",
      { text: ["a", "b", "c"], streamError: { type: "overloaded_error", message: "Overloaded" } },
    ],
    [
      "a stream that says aborted without our abort",
      { text: "a", streamError: { type: "api_error", message: "Request was aborted" } },
    ],
  ])("%s is retryable and ends no call", async (_name, reply) => {
    const events = await run(reply);
    expect(failureOf(events).kind).toBe("retryable");
    expect(events.map((event) => event.type)).not.toContain("toolcall_end");
  });

  it("understands legal oddities: CRLF, comments, unknown events, split bytes, joined data lines (case 20.6)", async () => {
    const text = `event: content_block_delta\r\ndata: {"type":"content_block_delta","index":0,\r\ndata: "delta":{"type":"text_delta","text":"Ä😀"}}\r\n\r\n`;
    const bytes = Buffer.from(text);
    const split = bytes.indexOf(Buffer.from("😀")) + 2;
    const events = await run({
      raw: {
        gapMs: 2,
        writes: [
          ": hello\r\n\r\n",
          start(),
          'event: brand_new\ndata: {"type":"brand_new"}\n\n',
          blockStart(),
          bytes.subarray(0, 30),
          bytes.subarray(30, split),
          bytes.subarray(split),
          event("content_block_delta", { index: 0, delta: { type: "text_delta", text: "x".repeat(3_000_000) } }),
          event("content_block_stop", { index: 0 }),
          event("message_delta", { delta: { stop_reason: "end_turn" }, usage: { output_tokens: 2 } }),
          'event: message_stop\ndata: {"type":"message_stop"}',
        ],
      },
    });
    expect(joined(events, "text_delta")).toHaveLength(3 + 3_000_000);
    expect(events.at(-1)).toEqual({ type: "done", stopReason: "stop" });
  });

  it("gives up after the configured silence, and says so (case 20.7)", async () => {
    const hold = new Promise(() => {});
    const events = await run({ text: "abc", chunk: 1, hold, holdAfter: 4 }, {}, contextWith({ "providers.idleTimeoutMs": 100 }));
    expect(failureOf(events)).toMatchObject({
      kind: "retryable",
      message: expect.stringMatching(/^Nothing arrived from 127\.0\.0\.1:\d+ for 0\.1 s$/),
    });
    expect(joined(events, "text_delta")).toBe("a");
    expect(await fake.requests[0]?.closed).toBe(true);
  });
});

describe("anthropic: abort", () => {
  it("closes the connection in the middle of a stream", async () => {
    const controller = new AbortController();
    fake.script({ text: "abc", chunk: 1, hold: new Promise(() => {}), holdAfter: 5 });
    const events = await collect(
      provider.stream(requestOf(model, { signal: controller.signal }), contextWith()),
      (event) => event.type === "text_delta" && controller.abort(),
    );
    expect(failureOf(events).kind).toBe("aborted");
    expect(await fake.requests[0]?.closed).toBe(true);
  });

  it("ends before the headers arrive, and sends nothing when it is aborted already", async () => {
    const controller = new AbortController();
    fake.script(() => new Promise(() => {}));
    const running = collect(provider.stream(requestOf(model, { signal: controller.signal }), contextWith()));
    await fake.request(1);
    controller.abort();
    expect(failureOf(await running).kind).toBe("aborted");
    const late = await collect(provider.stream(requestOf(model, { signal: controller.signal }), contextWith()));
    expect(failureOf(late).kind).toBe("aborted");
    expect(fake.requests).toHaveLength(1);
  });

  it("closes the connection when the reader stops reading", async () => {
    fake.script({ text: "abc", chunk: 1, hold: new Promise(() => {}), holdAfter: 5 });
    for await (const event of provider.stream(requestOf(model), contextWith())) if (event.type === "text_delta") break;
    expect(await fake.requests[0]?.closed).toBe(true);
  });
});

describe("anthropic: failures", () => {
  it.each<[number, string, string, string]>([
    [401, "authentication_error", "invalid x-api-key", "auth"],
    [403, "permission_error", "not allowed", "auth"],
    [400, "invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum", "overflow"],
    [400, "invalid_request_error", "input length and `max_tokens` exceed context limit: 1 + 2 > 2", "overflow"],
    [413, "request_too_large", "Request exceeds the maximum size", "overflow"],
    [400, "invalid_request_error", "Your credit balance is too low to access the API", "quota"],
    [400, "invalid_request_error", "messages: bad", "fatal"],
    [404, "not_found_error", "model: claude-x", "fatal"],
    [429, "rate_limit_error", "Number of request tokens has exceeded your per-minute rate limit: too many tokens", "retryable"],
    [500, "api_error", "Internal server error", "retryable"],
    [529, "overloaded_error", "Overloaded", "retryable"],
  ])("%i %s “%s” is %s", async (status, type, message, kind) => {
    const error = failureOf(await run({ failure: { status, type, message } }));
    expect(error).toMatchObject({ kind, status });
    expect(error.message).toContain(message.slice(0, 30));
  });

  it.each<[Record<string, string>, number]>([
    [{ "retry-after": "7" }, 7000],
    [{ "retry-after-ms": "250", "retry-after": "7" }, 250],
    [{ "x-ratelimit-reset-requests": "1m2s", "x-ratelimit-remaining-requests": "0" }, 62_000],
  ])("reads the hint %j", async (headers, expected) => {
    const error = failureOf(await run({ failure: { status: 429, type: "rate_limit_error", headers } }));
    expect(error.retryAfterMs).toBe(expected);
  });

  it("does not retry by itself", async () => {
    await run({ failure: { status: 500 } });
    expect(fake.requests).toHaveLength(1);
  });

  it("says where nothing listens", async () => {
    await fake.close();
    const error = failureOf(await collect(provider.stream(requestOf(model), contextWith())));
    expect(error).toMatchObject({ kind: "retryable", message: expect.stringContaining("ECONNREFUSED") });
    fake = await startFakeAnthropic();
  });

  it("never quotes keys, headers or proxy credentials (case 27)", async () => {
    const key = "sk-live-CANARY1-0123456789";
    const echo = failureOf(
      await run(
        {
          failure: {
            status: 401,
            type: "authentication_error",
            message: `bad header Authorization: Bearer ${key} and x-api-key: ${key}`,
          },
        },
        { apiKey: key, headers: { "x-gateway": "CANARY9-token" } },
      ),
    );
    expect(echo.message).not.toContain("CANARY");
    expect(echo.cause).toBeUndefined();
    const proxied = failureOf(
      await run({ text: "x" }, { apiKey: key }, contextWith({}, { HTTP_PROXY: "http://u:CANARY4@127.0.0.1:1/" })),
    );
    expect(proxied.kind).toBe("retryable");
    expect(JSON.stringify([proxied.message, String(proxied.stack), String(proxied.cause)])).not.toContain("CANARY");
  });
});

describe("anthropic: what is sent", () => {
  it("sends the key, marks the cache at four places and keeps text in order", async () => {
    await run(
      { text: "ok" },
      {
        apiKey: "k-123",
        systemPrompt: ["You are careful", "", "Today is Monday"],
        messages: [
          user("one"),
          assistant([{ type: "text", text: "two" }], { stopReason: "stop" }),
          user("three"),
          assistant([{ type: "text", text: "four" }]),
          user("five"),
        ],
      },
    );
    expect(fake.requests[0]?.refusal).toBeUndefined();
    expect(fake.requests[0]?.headers).toMatchObject({ "x-api-key": "k-123", "anthropic-version": expect.any(String) });
    const cache_control = { type: "ephemeral" };
    expect(body()).toMatchObject({
      model: "claude-test",
      max_tokens: 64_000,
      system: [
        { type: "text", text: "You are careful" },
        { type: "text", text: "Today is Monday", cache_control },
      ],
      tools: [{ name: "bash", cache_control }],
      messages: [
        { role: "user", content: [{ type: "text", text: "one" }] },
        { role: "assistant", content: [{ type: "text", text: "two" }] },
        { role: "user", content: [{ type: "text", text: "three", cache_control }] },
        { role: "assistant", content: [{ type: "text", text: "four" }] },
        { role: "user", content: [{ type: "text", text: "five", cache_control }] },
      ],
    });
  });

  it("joins the results of a turn, fills blank ones, renames foreign ids and keeps its own thinking only", async () => {
    await run(
      { text: "ok" },
      {
        thinkingLevel: "high",
        messages: [
          user("go"),
          assistant(
            [
              { type: "thinking", thinking: "foreign", thinkingSignature: "x" },
              { type: "text", text: "Hi" },
            ],
            { model: "other", stopReason: "stop" },
          ),
          user("more"),
          assistant([
            { type: "thinking", thinking: "own", thinkingSignature: "s1" },
            { type: "redactedThinking", data: "r" },
            { type: "text", text: "   " },
            { type: "toolCall", id: "call|1/a", name: "bash", arguments: { command: "true" } },
            { type: "toolCall", id: "call:1:a", name: "bash", arguments: {} },
          ]),
          result("call|1/a", "  ", true),
          result("call:1:a", "fine"),
          user("   "),
          user("and now?"),
        ],
      },
    );
    expect(fake.requests[0]?.refusal).toBeUndefined();
    const sent = body()["messages"] as { content: { [key: string]: unknown }[] }[];
    expect(sent[1]?.content).toEqual([{ type: "text", text: "Hi" }]);
    expect(sent[3]?.content).toEqual([
      { type: "thinking", thinking: "own", signature: "s1" },
      { type: "redacted_thinking", data: "r" },
      { type: "tool_use", id: "call_1_a", name: "bash", input: { command: "true" } },
      { type: "tool_use", id: "call_1_a_2", name: "bash", input: {} },
    ]);
    expect(sent[4]?.content).toMatchObject([
      { type: "tool_result", tool_use_id: "call_1_a", is_error: true, content: [{ text: "The tool failed without saying why" }] },
      { type: "tool_result", tool_use_id: "call_1_a_2", content: [{ text: "fine" }] },
      { type: "text", text: "and now?" },
    ]);
  });

  it("sends pictures under their real type and says what it leaves out", async () => {
    await run(
      { text: "ok" },
      {
        messages: [
          {
            role: "user",
            timestamp: 1,
            content: [
              { type: "image", data: png, mimeType: "image/jpeg" },
              { type: "image", data: `data:image/png;base64,${png.slice(0, 40)}\n${png.slice(40)}`, mimeType: "image/png" },
              { type: "image", data: "%%%", mimeType: "image/png" },
              { type: "image", data: "Qk0=", mimeType: "image/bmp" },
            ],
          },
        ],
      },
    );
    expect(fake.requests[0]?.refusal).toBeUndefined();
    expect((body()["messages"] as { content: unknown[] }[])[0]?.content).toMatchObject([
      { type: "image", source: { media_type: "image/png", data: png } },
      { type: "image", source: { media_type: "image/png", data: png } },
      { type: "text", text: "[image/png left out: its data is damaged]" },
      { type: "text", text: "[image/bmp left out: only PNG, JPEG, GIF and WebP can be sent]" },
    ]);
  });

  it("does the arithmetic of budgets", async () => {
    const sent = async (change: Partial<ProviderRequest>, limit = 64_000) => {
      model = { ...model, maxTokens: limit };
      await run({ text: "ok" }, change);
      const request = fake.requests.at(-1);
      expect(request?.refusal).toBeUndefined();
      const { max_tokens, thinking, output_config } = (request?.body ?? {}) as Record<string, unknown>;
      return { max_tokens, thinking, output_config };
    };
    expect(await sent({ thinkingLevel: "off" })).toEqual({ max_tokens: 64_000 });
    expect(await sent({ thinkingLevel: "medium", maxTokens: 1000 })).toEqual({
      max_tokens: 9192,
      thinking: { type: "enabled", budget_tokens: 8192 },
    });
    expect(await sent({ thinkingLevel: "high" })).toEqual({
      max_tokens: 64_000,
      thinking: { type: "enabled", budget_tokens: 16_384 },
    });
    expect(await sent({ thinkingLevel: "high" }, 8192)).toEqual({
      max_tokens: 8192,
      thinking: { type: "enabled", budget_tokens: 7168 },
    });
    expect(await sent({ thinkingLevel: "high" }, 1500)).toEqual({ max_tokens: 1500 });

    model = { ...model, maxTokens: 64_000 };
    const configured = contextWith({ thinkingBudgets: { low: 4000 } });
    await run({ text: "ok" }, { thinkingLevel: "low", maxTokens: 100 }, configured);
    expect(fake.requests.at(-1)?.body).toMatchObject({ thinking: { budget_tokens: 4000 } });

    const adaptive = { mode: "adaptive" as const, efforts: ["low" as const, "max" as const] };
    model = { ...model, thinking: { ...adaptive, off: "between_tools" }, compat: { thinkingDisplay: "summarized" } };
    expect(await sent({ thinkingLevel: "max" })).toEqual({
      max_tokens: 64_000,
      thinking: { type: "adaptive", display: "summarized" },
      output_config: { effort: "max" },
    });
    model = { ...model, thinking: { ...adaptive, off: "disabled" } };
    expect(await sent({ thinkingLevel: "off" })).toEqual({ max_tokens: 64_000, thinking: { type: "disabled" } });
    model = { ...model, thinking: { ...adaptive, off: "never" } };
    expect(await sent({ thinkingLevel: "off" })).toEqual({ max_tokens: 64_000, output_config: { effort: "low" } });
  });

  it("pauses a thinking budget inside a turn that began without thinking", async () => {
    await run(
      { text: "ok" },
      {
        thinkingLevel: "high",
        messages: [user("go"), assistant([{ type: "toolCall", id: "a", name: "bash", arguments: {} }]), result("a", "done")],
      },
    );
    expect(fake.requests[0]?.refusal).toBeUndefined();
    expect(body()["thinking"]).toBeUndefined();
  });

  it("maps tool names into the service's alphabet and back", async () => {
    const events = await run(
      { toolCalls: [{ name: "mcp_files_read", arguments: {} }] },
      {
        tools: [
          { ...bash, name: "mcp.files/read" },
          { ...bash, name: "mcp_files_read_2" },
        ],
      },
    );
    expect(fake.requests[0]?.refusal).toBeUndefined();
    expect(events).toContainEqual({ type: "toolcall_start", index: 0, id: expect.any(String), name: "mcp.files/read" });
  });

  it("goes through a proxy, but not for the hosts it is told to leave out", async () => {
    const seen: string[] = [];
    const proxy = createServer((request, response) => {
      seen.push(request.url ?? "");
      response.writeHead(502).end("proxy");
    });
    proxy.on("connect", (request, socket) => {
      seen.push(request.url ?? "");
      socket.end("HTTP/1.1 502 Bad Gateway\r\n\r\n");
    });
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    try {
      const refused = failureOf(await run({ text: "x" }, {}, contextWith({}, { HTTP_PROXY: url })));
      expect(refused.kind).toBe("retryable");
      expect(seen).toHaveLength(1);
      const direct = await run({ text: "y" }, {}, contextWith({}, { HTTP_PROXY: url, NO_PROXY: "127.0.0.1" }));
      expect(direct.at(-1)).toEqual({ type: "done", stopReason: "stop" });
      expect(seen).toHaveLength(1);
    } finally {
      proxy.closeAllConnections();
      await new Promise((resolve) => proxy.close(resolve));
    }
  });

  it("checks a key with a cheap request", async () => {
    await provider.verifyKey?.("good-key", fake.url, new AbortController().signal);
    await expect(provider.verifyKey?.("bad-key", `${fake.url}/v1`, new AbortController().signal)).rejects.toMatchObject({
      kind: "auth",
    });
  });
});

function event(type: string, fields: Record<string, unknown>): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
}
function start(): string {
  return event("message_start", {
    message: { id: "msg", type: "message", role: "assistant", content: [], usage: { input_tokens: 1, output_tokens: 1 } },
  });
}
function blockStart(): string {
  return event("content_block_start", { index: 0, content_block: { type: "text", text: "" } });
}
