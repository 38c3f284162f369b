// Answers of the Messages API, whole and broken, and what failures mean.
import { describe, expect, it } from "vitest";
import type { FakeReply } from "../../support/fake-anthropic.ts";
import { collect, failureOf, joined, requestOf } from "../../support/provider-context.ts";
import { contextWith, fake, model, provider, run, useAnthropic } from "./_anthropic.ts";

useAnthropic();

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

describe("anthropic: servers that only resemble the service", () => {
  const stop = (reason: string, rest: object = {}) => event("message_delta", { delta: { stop_reason: reason }, ...rest });
  const call = (block: object, ...deltas: unknown[]) => [
    event("content_block_start", { index: 0, content_block: { type: "tool_use", ...block } }),
    ...deltas.map((partial_json) =>
      event("content_block_delta", { index: 0, delta: { type: "input_json_delta", partial_json } }),
    ),
    event("content_block_stop", { index: 0 }),
    stop("tool_use"),
  ];
  const text = [blockStart(), event("content_block_delta", { index: 0, delta: { type: "text_delta", text: "hi" } })];

  it.each<[string, string[]]>([
    ["no id", call({ name: "bash", input: {} }, '{"command":"true"}')],
    ["an id that is a number", call({ id: 7, name: "bash", input: {} }, '{"command":"true"}')],
    ["arguments at the start", call({ id: "a", name: "bash", input: { command: "true" } })],
    ["arguments as text at the start", call({ id: "a", name: "bash", input: '{"command":"true"}' })],
    ["arguments as an object", call({ id: "a", name: "bash" }, { command: "true" })],
    ["arguments encoded twice", call({ id: "a", name: "bash" }, JSON.stringify('{"command":"true"}'))],
  ])("call tools with %s", async (_name, writes) => {
    const events = await run({ raw: { writes: [start(), ...writes] } });
    const begun = events.find((each) => each.type === "toolcall_start");
    expect(begun).toMatchObject({ id: expect.stringMatching(/./) });
    expect(events).toContainEqual({ type: "toolcall_end", index: 0, arguments: { command: "true" } });
    expect(events.at(-1)).toEqual({ type: "done", stopReason: "toolUse" });
  });

  it.each<[string, FakeReply["raw"]]>([
    ["no counts", { writes: [event("message_start", { message: { usage: null } }), ...text, stop("end_turn", { usage: null })] }],
    ["no message at the start", { writes: [event("message_start", {}), ...text, stop("end_turn")] }],
    ["events that are none", { writes: [start(), "event: message_delta\ndata: null\n\n", ...text, stop("end_turn")] }],
    ["a break between the reason and the end", { writes: [start(), ...text, stop("end_turn")], end: "destroy" }],
    ["silence between the reason and the end", { writes: [start(), ...text, stop("end_turn")], end: "open" }],
    [
      "a failure between the reason and the end",
      { writes: [start(), ...text, stop("end_turn"), event("error", { error: { type: "api_error", message: "late" } })] },
    ],
  ])("answer with %s", async (_name, raw) => {
    const events = await run(raw === undefined ? {} : { raw });
    expect(joined(events, "text_delta")).toBe("hi");
    expect(events.at(-1)).toEqual({ type: "done", stopReason: "stop" });
  });

  it.each<[string, string, string]>([
    ["a block without a start", event("content_block_start", { index: 0 }), "makes no sense"],
    ["a delta without one", blockStart() + event("content_block_delta", { index: 0 }), "makes no sense"],
    ["a failure that is no JSON", "event: error\ndata: upstream died\n\n", "upstream died"],
    ["a failure without a word", "event: error\ndata: {}\n\n", "without words"],
  ])("are asked again after %s", async (_name, broken, words) => {
    const error = failureOf(await run({ raw: { writes: [start(), broken] } }));
    expect(error).toMatchObject({ kind: "retryable", message: expect.stringContaining(words) });
  });

  it.each<[string, string, string]>([
    ['\n  {"type":"error","error":{"type":"authentication_error","message":"bad key"}}', "auth", "bad key"],
    ['[{"error":{"type":"authentication_error","message":"bad key"}}]', "auth", "bad key"],
    ["\ufeff<html><title>Sign in</title></html>", "retryable", "web page"],
  ])("say what is wrong where a stream should begin: %s", async (body, kind, words) => {
    for (const writes of [[body], [...body]]) {
      const error = failureOf(await run({ raw: { writes } }));
      expect(error).toMatchObject({ kind, message: expect.stringContaining(words) });
    }
  });

  it("may be asked again when they answer without a body", async () => {
    const error = failureOf(await run({ raw: { status: 204, writes: [] } }));
    expect(error).toMatchObject({ kind: "retryable", message: expect.stringContaining("204 without a body") });
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
    [{ "retry-after": "7, 7" }, 7000],
    [{ "retry-after-ms": "", "retry-after": " 7 " }, 7000],
    [{ "retry-after": "Mon, 30 Nov 2020 10:00:00 GMT" }, 0],
    [{ "x-ratelimit-reset": "2" }, 2000],
    [{ "x-ratelimit-reset": "2020-11-30T10:00:00Z", "x-ratelimit-remaining": "0" }, 0],
    [{ "x-ratelimit-reset-ms": "250" }, 250],
  ])("reads the hint %j", async (headers, expected) => {
    const error = failureOf(await run({ failure: { status: 429, type: "rate_limit_error", headers } }));
    expect(error.retryAfterMs).toBe(expected);
  });

  it.each<Record<string, string>>([
    { "retry-after": "soon" },
    { "retry-after": "" },
    { "retry-after": "120 apples" },
    { "x-ratelimit-reset": "60", "x-ratelimit-remaining": "12" },
    { "x-ratelimit-reset-ms": "60000", "x-ratelimit-remaining": "12" },
    { "x-ratelimit-reset-tokens": "60s", "x-ratelimit-remaining-tokens": "12" },
  ])("takes nothing for a hint that is none: %j", async (headers) => {
    const error = failureOf(await run({ failure: { status: 500, headers } }));
    expect(error.retryAfterMs).toBeUndefined();
  });

  it("does not retry by itself", async () => {
    await run({ failure: { status: 500 } });
    expect(fake.requests).toHaveLength(1);
  });

  it("says where nothing listens", async () => {
    await fake.close();
    const error = failureOf(await collect(provider.stream(requestOf(model), contextWith())));
    expect(error).toMatchObject({ kind: "retryable", message: expect.stringContaining("ECONNREFUSED") });
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
