import type { AssistantMessage, Model, ModelMessage, ProviderRequest, ToolSchema } from "mortise/extension";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import openai from "../../../extensions/providers/openai.ts";
import transport from "../../../extensions/providers/transport.ts";
import { type FakeReply, type FakeServer, startFakeOpenAI } from "../../support/fake-openai.ts";
import { collect, failureOf, joined, providerContext, providerOf, requestOf } from "../../support/provider-context.ts";

const provider = providerOf(openai);
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
  fake = await startFakeOpenAI();
  model = {
    id: "gpt-test",
    name: "GPT Test",
    api: "openai-completions",
    provider: "local",
    baseUrl: `${fake.url}/v1`,
    reasoning: true,
    input: ["text", "image"],
    cost: { input: 1, output: 5, cacheRead: 0.1, cacheWrite: 0 },
    maxTokens: 1000,
    thinking: { mode: "effort", efforts: ["low", "medium", "high"], off: "disabled" },
  };
});
afterEach(() => fake.close());

const context = (settings: Record<string, unknown> = {}) =>
  providerContext({
    definitions: transport,
    settings,
    services: { launch: { home: "/nowhere", cwd: "/", options: {}, env: {} } },
  });
const run = (reply: FakeReply, change: Partial<ProviderRequest> & { text?: string } = {}, ctx = context()) => {
  fake.script(reply);
  return collect(provider.stream(requestOf(model, { tools: [bash], ...change }), ctx));
};
const assistant = (content: AssistantMessage["content"]): AssistantMessage => ({
  role: "assistant",
  content,
  api: "openai-completions",
  provider: "local",
  model: "gpt-test",
  usage,
  stopReason: "toolUse",
  timestamp: 1,
});
const user = (content: string): ModelMessage => ({ role: "user", content, timestamp: 1 });
const body = (n = 0) => fake.requests[n]?.body as Record<string, unknown>;
const chunk = (delta: object, finish: string | null = null) =>
  `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;

describe("openai: a complete answer", () => {
  it("streams reasoning, text and several calls, with usage", async () => {
    const events = await run({
      thinking: "let me see",
      text: "Looking Ä😀",
      chunk: 4,
      toolCalls: [
        { id: "t1", name: "bash", arguments: { command: "ls -l" }, chunk: 5 },
        { id: "t2", name: "bash", json: "" },
      ],
      usage: { input: 100, output: 20, cacheRead: 7, reasoning: 4 },
    });
    expect(fake.requests[0]?.refusal).toBeUndefined();
    expect(joined(events, "toolcall_delta")).toBe('{"command":"ls -l"}');
    expect(events.filter((event) => !event.type.endsWith("_delta"))).toEqual([
      { type: "start", responseId: expect.stringMatching(/^chatcmpl-/) },
      { type: "thinking_start", index: 0 },
      { type: "thinking_end", index: 0 },
      { type: "text_start", index: 1 },
      { type: "text_end", index: 1 },
      { type: "toolcall_start", index: 2, id: "t1", name: "bash" },
      { type: "toolcall_start", index: 3, id: "t2", name: "bash" },
      { type: "toolcall_end", index: 2, arguments: { command: "ls -l" } },
      { type: "toolcall_end", index: 3, arguments: {} },
      { type: "usage", usage: { input: 100, output: 20, cacheRead: 7, cacheWrite: 0, reasoningTokens: 4 } },
      { type: "done", stopReason: "toolUse" },
    ]);
    expect(joined(events, "thinking_delta")).toBe("let me see");
    expect(joined(events, "text_delta")).toBe("Looking Ä😀");
  });

  it("understands servers that number every call 0, leave ids out or use another field for reasoning", async () => {
    const call = (id: string | undefined, name: string, args: string) => ({
      tool_calls: [{ index: 0, ...(id && { id }), function: { name, arguments: args } }],
    });
    const same = await run({
      raw: {
        writes: [
          chunk({ reasoning: "hm" }),
          chunk(call("a", "bash", '{"command":"1"}')),
          chunk(call("b", "bash", '{"command":"2"}')),
          chunk({}, "stop"),
          "data: [DONE]\n\n",
        ],
      },
    });
    expect(joined(same, "thinking_delta")).toBe("hm");
    expect(same.filter((event) => event.type === "toolcall_end").map((event) => event.arguments)).toEqual([
      { command: "1" },
      { command: "2" },
    ]);
    expect(same.at(-1)).toEqual({ type: "done", stopReason: "toolUse" });
    const bare = await run({ raw: { writes: [chunk(call(undefined, "bash", "{}")), chunk({}, "tool_calls")] } });
    expect(bare).toContainEqual({ type: "toolcall_start", index: 0, id: expect.stringMatching(/^call_/), name: "bash" });
  });

  it("ends soon after the answer when the server leaves the connection open", async () => {
    const events = await run({ raw: { writes: [chunk({ content: "hi" }), chunk({}, "stop"), "data: [DONE]\n\n"], end: "open" } });
    expect(events.at(-1)).toEqual({ type: "done", stopReason: "stop" });
    expect(await fake.requests[0]?.closed).toBe(true);
  });

  it("keeps the complete calls of an answer that the limit cut (case 20.4)", async () => {
    const events = await run({
      toolCalls: [
        { id: "a", name: "bash", arguments: { command: "true" } },
        { id: "b", name: "bash", json: '{"command":"rm -rf ./build/tmp' },
      ],
      stop: "length",
    });
    expect(events.filter((event) => event.type === "toolcall_end")).toEqual([
      { type: "toolcall_end", index: 0, arguments: { command: "true" } },
    ]);
    expect(events.at(-1)).toEqual({ type: "done", stopReason: "length" });
  });
});

describe("openai: broken streams (case 20)", () => {
  const half = { toolCalls: [{ id: "a", name: "bash", json: '{"command":"rm -rf ./build/tmp', chunk: 6 }] } satisfies FakeReply;
  it.each<[string, FakeReply]>([
    ["20.1 the socket is destroyed in the arguments", { ...half, cutAfter: 4, cut: "destroy" }],
    ["20.2 a clean end in the arguments", { ...half, cutAfter: 4, cut: "end" }],
    ["20.3 a stop with half the arguments", half],
    ["20.5 a stop on tool use without a call", { text: "hm", stop: "tool_calls" }],
    ["20.6 malformed JSON", { raw: { writes: [chunk({ content: "a" }), "data: {bad\n\n"] } }],
    ["20.7 an empty body", { raw: { writes: [] } }],
    ["20.7 only the end mark", { raw: { writes: ["data: [DONE]\n\n"] } }],
    ["20.7 a web page", { raw: { headers: { "content-type": "text/html" }, writes: ["<html><body>Sign in</body></html>"] } }],
    ["20.7 an error event", { text: ["a", "b"], streamError: { type: "server_error", message: "The server had an error" } }],
  ])("%s is retryable and ends no call", async (_name, reply) => {
    const events = await run(reply);
    expect(failureOf(events).kind).toBe("retryable");
    expect(events.map((event) => event.type)).not.toContain("toolcall_end");
  });

  it("aborts in the middle of a stream and closes the connection", async () => {
    const controller = new AbortController();
    fake.script({ text: "abc", chunk: 1, hold: new Promise(() => {}), holdAfter: 3 });
    const events = await collect(
      provider.stream(requestOf(model, { signal: controller.signal }), context()),
      (event) => event.type === "text_delta" && controller.abort(),
    );
    expect(failureOf(events).kind).toBe("aborted");
    expect(await fake.requests[0]?.closed).toBe(true);
  });

  it("gives up after the configured silence", async () => {
    const events = await run(
      { text: "abc", chunk: 1, hold: new Promise(() => {}), holdAfter: 2 },
      {},
      context({ "providers.idleTimeoutMs": 100 }),
    );
    expect(failureOf(events)).toMatchObject({ kind: "retryable", message: expect.stringContaining("Nothing arrived") });
  });
});

describe("openai: failures", () => {
  it.each<[number, string | undefined, string]>([
    [
      400,
      JSON.stringify({
        error: { message: "This model's maximum context length is 8192 tokens", code: "context_length_exceeded" },
      }),
      "overflow",
    ],
    [
      400,
      JSON.stringify({ error: { message: "the request exceeds the available context size", type: "exceed_context_size_error" } }),
      "overflow",
    ],
    [400, "", "overflow"],
    [400, JSON.stringify({ detail: "unsupported parameter" }), "fatal"],
    [400, JSON.stringify({ error: "bad request" }), "fatal"],
    [400, JSON.stringify([{ error: { message: "Invalid argument" } }]), "fatal"],
    [401, JSON.stringify({ error: { message: "Incorrect API key provided", code: "invalid_api_key" } }), "auth"],
    [402, JSON.stringify({ message: "Payment required" }), "quota"],
    [
      429,
      JSON.stringify({
        error: { message: "You exceeded your current quota, please check your billing", code: "insufficient_quota" },
      }),
      "quota",
    ],
    [429, JSON.stringify({ error: { message: "Rate limit reached: too many tokens per minute" } }), "retryable"],
    [503, "upstream connect error", "retryable"],
  ])("%i %s is %s", async (status, text, kind) => {
    const error = failureOf(await run({ failure: { status, body: text ?? "" } }));
    expect(error).toMatchObject({ kind, status });
    expect(error.message.length).toBeGreaterThan(5);
  });

  it.each<[string, string, string]>([
    [JSON.stringify({ error: { message: "model overloaded", code: 503 } }), "retryable", "model overloaded"],
    [JSON.stringify({ error: { message: "maximum context length is 10" } }), "overflow", "maximum context length"],
    [JSON.stringify({ error: { message: "no", type: "authentication_error" } }), "auth", "no"],
    [JSON.stringify({ detail: "not today" }), "retryable", "not today"],
    [JSON.stringify({ error: "plain words" }), "retryable", "plain words"],
    [JSON.stringify({ choices: [{ message: { content: "hi" } }] }), "retryable", "answered with JSON instead of an event stream"],
    ['{"error": {"mess', "retryable", "answered with JSON instead of an event stream"],
  ])("status 200 with %s is %s", async (text, kind, words) => {
    for (const type of ["application/json", "text/event-stream"]) {
      const error = failureOf(
        await run({ raw: { headers: { "content-type": type }, writes: [text.slice(0, 5), text.slice(5)] } }),
      );
      expect(error).toMatchObject({ kind, message: expect.stringContaining(words) });
    }
  });

  it("says what a web page says, without its markup", async () => {
    const page = "<!DOCTYPE html><html><head><title>503 Busy</title><script>let x = 1</script></head><body><h1>Come back</h1>";
    const error = failureOf(await run({ failure: { status: 503, headers: { "content-type": "text/html" }, body: page } }));
    expect(error).toMatchObject({ kind: "retryable", message: "503 503 Busy Come back" });
  });

  it("never quotes a key that cannot be sent, nor one in a text that is cut (case 27)", async () => {
    const unsendable = `CANARY-${"y\ny ".repeat(300)}`;
    const error = failureOf(await collect(provider.stream(requestOf(model, { apiKey: unsendable }), context())));
    expect(error.message).toMatch(/failed/);
    expect(error.message).not.toMatch(/CANARY|y y/);
    const long = `CANARY-${"z".repeat(2000)}`;
    const echo = failureOf(await run({ failure: { status: 400, message: `bad key: ${long}` } }, { apiKey: long }));
    expect(echo.message).toMatch(/^400 .*bad key: \[redacted\]$/);
  });

  it("never quotes the key (case 27)", async () => {
    const key = "sk-live-CANARY1-0123456789";
    const error = failureOf(
      await run(
        { failure: { status: 401, message: `Incorrect API key: ${key} (Authorization: Bearer ${key})` } },
        { apiKey: key },
      ),
    );
    expect(error.kind).toBe("auth");
    expect(error.message).not.toContain("CANARY");
  });
});

describe("openai: what is sent", () => {
  it("sends limit, effort, usage option and pictures, and pairs results", async () => {
    await run(
      { text: "ok" },
      {
        systemPrompt: ["You are careful", "Today is Monday"],
        thinkingLevel: "high",
        messages: [
          {
            role: "user",
            timestamp: 1,
            content: [
              { type: "text", text: "look" },
              { type: "image", data: png, mimeType: "image/jpeg", detail: "original" },
            ],
          },
          assistant([
            { type: "thinking", thinking: "hm" },
            { type: "toolCall", id: "x".repeat(60), name: "bash", arguments: { command: "true" } },
            { type: "toolCall", id: `${"x".repeat(60)}y`, name: "bash", arguments: {} },
          ]),
          {
            role: "toolResult",
            toolCallId: "x".repeat(60),
            toolName: "bash",
            content: [{ type: "image", data: png, mimeType: "image/png" }],
            isError: false,
            timestamp: 1,
          },
          { role: "toolResult", toolCallId: `${"x".repeat(60)}y`, toolName: "bash", content: [], isError: true, timestamp: 1 },
          user("and now?"),
        ],
      },
    );
    expect(fake.requests[0]?.refusal).toBeUndefined();
    const messages = body()["messages"] as { [key: string]: unknown }[];
    expect(body()).toMatchObject({ max_tokens: 1000, reasoning_effort: "high", stream_options: { include_usage: true } });
    expect(messages.map((message) => message["role"])).toEqual(["system", "user", "assistant", "tool", "tool", "user", "user"]);
    expect(messages[0]?.["content"]).toBe("You are careful\n\nToday is Monday");
    expect(messages[1]?.["content"]).toMatchObject([
      { type: "text" },
      { image_url: { url: `data:image/png;base64,${png}`, detail: "high" } },
    ]);
    expect(messages[3]?.["content"]).toBe("(see the picture below)");
    expect(messages[4]?.["content"]).toBe("Error: The tool failed without saying why");
  });

  it("asks for no reasoning when it is off, and with tools where the server refuses both", async () => {
    await run({ text: "ok" }, { thinkingLevel: "off" });
    expect(body(0)["reasoning_effort"]).toBe("none");
    model = {
      ...model,
      compat: { reasoningWithTools: false, maxTokensField: "max_completion_tokens", extraBody: { store: false } },
    };
    await run({ text: "ok" }, { thinkingLevel: "high" });
    expect(body(1)).toMatchObject({ reasoning_effort: "none", max_completion_tokens: 1000, store: false });
    await run({ text: "ok" }, { thinkingLevel: "high", tools: [] });
    expect(body(2)["reasoning_effort"]).toBe("high");
    expect(fake.requests.map((request) => request.refusal)).toEqual([undefined, undefined, undefined]);
  });

  it("sends no Authorization without a key", async () => {
    await fake.close();
    fake = await startFakeOpenAI({ keyless: true });
    model = { ...model, baseUrl: `${fake.url}/v1/` };
    const events = await run({ text: "ok" }, { apiKey: undefined, headers: { "x-team": "blue" } });
    expect(events.at(-1)).toEqual({ type: "done", stopReason: "stop" });
    expect(fake.requests[0]?.headers["authorization"]).toBeUndefined();
    expect(fake.requests[0]?.headers["x-team"]).toBe("blue");
  });

  it("checks a key with a cheap request", async () => {
    await provider.verifyKey?.("good", `${fake.url}/v1`, new AbortController().signal);
    await expect(provider.verifyKey?.("bad-key", `${fake.url}/v1`, new AbortController().signal)).rejects.toMatchObject({
      kind: "auth",
    });
  });
});
