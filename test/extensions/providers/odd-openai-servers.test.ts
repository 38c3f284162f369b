// Servers that speak the language of chat completions with an accent: each answer below was seen in the field or is one step from
// one that was.
import type { Model } from "mortise/extension";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import openai from "../../../extensions/providers/openai.ts";
import transport from "../../../extensions/providers/transport.ts";
import { type FakeServer, startFakeOpenAI } from "../../support/fake-openai.ts";
import { collect, failureOf, joined, providerContext, providerOf, requestOf } from "../../support/provider-context.ts";

const provider = providerOf(openai);
let fake: FakeServer;
beforeAll(async () => {
  fake = await startFakeOpenAI();
});
afterAll(() => fake.close());

const context = providerContext({
  definitions: transport,
  services: { launch: { home: "/nowhere", cwd: "/", options: {}, env: {} } },
});
const DONE = "data: [DONE]\n\n";
const json = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;
const chunk = (delta: unknown, finish: string | null = null, more: object = {}) =>
  json({ id: "c", choices: [{ index: 0, delta, finish_reason: finish }], ...more });
const calls = (...pieces: unknown[]) => chunk({ tool_calls: pieces });
const call = (args: unknown, rest: object = {}, name: string | undefined = "ls") => ({
  ...rest,
  function: { ...(name && { name }), arguments: args },
});

function run(writes: readonly string[], cacheWrite = 1) {
  const model: Model = {
    id: "m",
    name: "m",
    api: "openai-completions",
    provider: "local",
    baseUrl: `${fake.url}/v1`,
    reasoning: false,
    input: ["text"],
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite },
  };
  fake.script({ raw: { writes } });
  return collect(provider.stream(requestOf(model), context));
}

const a = { path: "a" };
const b = { path: "b" };
const [A, B] = [JSON.stringify(a), JSON.stringify(b)];
const [A1, A2, B1, B2] = [A.slice(0, 5), A.slice(5), B.slice(0, 5), B.slice(5)];

it.each<[string, string[], object[]]>([
  ["no number", [calls(call(A1, { id: "1" })), calls(call(A2, {}, "")), calls(call(B, { id: "2" }))], [a, b]],
  ["no number, name and id in each piece", [calls(call(A1, { id: "1" })), calls(call(A2, { id: "1" }))], [a]],
  [
    "no number, pieces of two calls by turns",
    [calls(call(A1, { id: "1" }), call(B1, { id: "2" })), calls(call(A2, { id: "1" }, ""), call(B2, { id: "2" }, ""))],
    [a, b],
  ],
  ["no number and no id", [calls(call(A)), calls(call(B))], [a, b]],
  ["no number, no id and no arguments", [calls(call("")), calls(call(""))], [{}, {}]],
  ["no id, every call the first", [calls(call(A, { index: 0 })), calls(call(B, { index: 0 }))], [a, b]],
  ["no id, every call the first, in pieces", [A1, A2, B1, B2].map((text) => calls(call(text, { index: 0 }))), [a, b]],
  ["one id, every call the first", [calls(call(A, { index: 0, id: "1" })), calls(call(B, { index: 0, id: "1" }))], [a, b]],
  ["one id for two", [calls(call(A, { index: 0, id: "1" })), calls(call(B, { index: 1, id: "1" }))], [a, b]],
  ["numbers from one on, with gaps", [calls(call(A, { index: 1, id: "1" })), calls(call(B, { index: 5, id: "2" }))], [a, b]],
  ["an id that is a number", [calls(call(A, { index: 0, id: 7 }))], [a]],
  [
    "name, id and an empty text again at the end",
    [calls(call(A, { index: 0, id: "1" })), calls(call("", { index: 0, id: "1" }))],
    [a],
  ],
  ["arguments as an object", [calls(call(a, { index: 0, id: "1" }))], [a]],
  ["an empty object before the text", [calls(call({}, { index: 0, id: "1" })), calls(call(A, { index: 0 }, ""))], [a]],
  ["arguments null, then text", [calls(call(null, { index: 0, id: "1" })), calls(call(A, { index: 0 }, ""))], [a]],
  ["arguments encoded twice", [calls(call(JSON.stringify(A), { index: 0, id: "1" }))], [a]],
  [
    "the id before the name",
    [calls({ index: 0, id: "1" }), calls(call("", { index: 0 })), calls(call(A, { index: 0 }, ""))],
    [a],
  ],
  ["arguments before the name", [calls(call(A1, { index: 0 }, "")), calls(call(A2, { index: 0 }))], [a]],
  ["one call without a list", [chunk({ tool_calls: call(A, { index: 0, id: "1" }) })], [a]],
  [
    "holes in the list",
    [calls(null, call(A, { index: 0, id: "1" })), calls({ index: 0 }), calls({ index: 0, function: null })],
    [a],
  ],
  [
    "the form before there were several",
    [chunk({ function_call: { name: "ls", arguments: A1 } }), chunk({ function_call: { arguments: A2 } })],
    [a],
  ],
  [
    "a message instead of deltas",
    [json({ choices: [{ message: { tool_calls: [call(A, { id: "1" }), call(B, { id: "2" })] } }] })],
    [a, b],
  ],
])("tool calls with %s are understood", async (_name, writes, expected) => {
  for (const end of [[chunk({}, "tool_calls"), DONE], [chunk({}, "stop"), DONE], [chunk({}, ""), DONE], [DONE]]) {
    const events = await run([...writes, ...end]);
    const ends = events.flatMap((event) => (event.type === "toolcall_end" ? [event.arguments] : []));
    expect(ends).toEqual(expected);
    const ids = events.flatMap((event) => (event.type === "toolcall_start" ? [event.id] : []));
    expect(ids).toHaveLength(expected.length);
    for (const id of ids) expect(id).toMatch(/./);
    expect(events.at(-1)).toEqual({ type: "done", stopReason: "toolUse" });
  }
});

it.each<[string, string[]]>([
  ["the arguments stop short", [calls(call(A1, { index: 0, id: "1" }))]],
  [
    "the next call begins in the middle of the arguments",
    [calls(call(A1, { index: 0, id: "1" })), calls(call(B, { index: 0, id: "2" }))],
  ],
  ["no name ever comes", [calls(call(A, { index: 0, id: "1" }, ""))]],
])("no call is run when %s", async (_name, writes) => {
  const events = await run([...writes, chunk({}, "tool_calls"), DONE]);
  expect(failureOf(events).kind).toBe("retryable");
  // Nothing of such an answer is run: the failure is its end.
});

it.each<[string, string[], { thinking?: string }?]>([
  ["no reason but the end mark", [chunk({ content: "hi" }), DONE]],
  ["an end mark without a blank", [chunk({ content: "hi" }), "data:[DONE]\r\n\r\n"]],
  ["a reason of its own", [chunk({ content: "hi" }, "eos"), DONE]],
  ["no end mark", [chunk({ content: "hi" }, "stop")]],
  ["no blank line at the end", [chunk({ content: "hi" }), chunk({}, "stop").trimEnd()]],
  [
    "chunks of a role alone",
    [chunk({ role: "assistant" }), chunk({ role: "assistant", content: null }), chunk({ content: "hi" }, "stop")],
  ],
  ["no delta", [chunk(null), chunk({ content: "hi" }, "stop")]],
  [
    "events that are no chunks",
    ["data: null\n\n", 'data: "ping"\n\n', "data: 1\n\n", json({ detail: null, message: "" }), chunk({ content: "hi" }, "stop")],
  ],
  [
    "comments, CRLF and no blank",
    [": busy\r\n\r\n", chunk({ content: "hi" }, "stop").replace(": ", ":").replaceAll("\n", "\r\n")],
  ],
  ["data in several lines", ['data: {"choices":[{"index":0,\ndata: "delta":{"content":"hi"},"finish_reason":"stop"}]}\n\n']],
  ["a byte order mark", [`\ufeff${chunk({ content: "hi" }, "stop")}`]],
  [
    "a second choice",
    [
      json({
        choices: [
          { index: 1, delta: { content: "no" } },
          { index: 0, delta: { content: "hi" } },
        ],
      }),
      chunk({}, "stop"),
    ],
  ],
  ["a message", [json({ choices: [{ message: { content: "hi" }, finish_reason: "stop" }] })]],
  [
    "reasoning in the second field",
    [chunk({ reasoning_content: "", reasoning: "hm" }), chunk({ content: "hi" }, "stop")],
    { thinking: "hm" },
  ],
  [
    "content in parts",
    [
      chunk({ content: [{ type: "thinking", thinking: [{ type: "text", text: "hm" }] }] }),
      chunk({ content: [{ type: "text", text: "hi" }, null, { type: "reference" }] }, "stop"),
    ],
    { thinking: "hm" },
  ],
])("text with %s is understood", async (_name, writes, { thinking = "" } = {}) => {
  const events = await run(writes);
  expect(joined(events, "text_delta")).toBe("hi");
  expect(joined(events, "thinking_delta")).toBe(thinking);
  expect(events.at(-1)).toEqual({ type: "done", stopReason: "stop" });
});

describe("counts", () => {
  const full = { prompt_tokens: 10, completion_tokens: 3 };
  it.each<[string, string[], object]>([
    [
      "with the last choice",
      [json({ choices: [{ delta: {}, finish_reason: "stop", usage: { ...full, cached_tokens: 4 } }] })],
      { input: 6, cacheRead: 4 },
    ],
    ["with the server's own things", [chunk({}, "stop", { x_groq: { id: "r", usage: full } })], { input: 10 }],
    [
      "in every chunk",
      [chunk({}, null, { usage: { ...full, completion_tokens: 1 } }), chunk({}, "stop", { usage: full })],
      { input: 10 },
    ],
    ["after the end", [chunk({}, "stop"), json({ choices: [], usage: full }), DONE], { input: 10 }],
    ["without choices", [chunk({}, "stop"), json({ usage: full })], { input: 10 }],
    [
      "with hits of the cache",
      [chunk({}, "stop", { usage: { ...full, prompt_cache_hit_tokens: 4, prompt_cache_miss_tokens: 6 } })],
      { input: 6, cacheRead: 4 },
    ],
    [
      "with what was written to the cache",
      [chunk({}, "stop", { usage: { ...full, prompt_tokens_details: { cached_tokens: 4, cache_write_tokens: 5 } } })],
      { input: 1, cacheRead: 4, cacheWrite: 5 },
    ],
    ["in other words", [chunk({}, "stop", { usage: { input_tokens: 10, output_tokens: 3 } })], { input: 10 }],
    [
      "as texts, with holes",
      [chunk({}, "stop", { usage: { prompt_tokens: "10", completion_tokens: 3, prompt_tokens_details: null } })],
      { input: 10 },
    ],
  ])("%s are found", async (_name, writes, expected) => {
    const events = await run([chunk({ content: "hi" }), ...writes]);
    expect(events).toContainEqual({ type: "usage", usage: { output: 3, cacheRead: 0, cacheWrite: 0, ...expected } });
  });

  it("of writes to the cache are input where the model has no price for them", async () => {
    const usage = { ...full, prompt_tokens_details: { cached_tokens: 4, cache_write_tokens: 5 } };
    const events = await run([chunk({ content: "hi" }, "stop", { usage })], 0);
    expect(events).toContainEqual({ type: "usage", usage: { input: 6, output: 3, cacheRead: 4, cacheWrite: 0 } });
  });

  it("that are none are no counts and no failure", async () => {
    const events = await run([chunk({ content: "hi" }, "stop", { usage: { prompt_tokens: -1, completion_tokens: {} } })]);
    expect(events).toContainEqual({ type: "usage", usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 } });
    expect(events.at(-1)).toEqual({ type: "done", stopReason: "stop" });
  });
});

it.each<[string, string, string, RegExp]>([
  ["as plain words", json({ error: "upstream overloaded" }), "retryable", /upstream overloaded/],
  ["with a number", json({ error: { message: "Slow down", code: 429 } }), "retryable", /429: Slow down/],
  ["of the request", json({ error: { message: "bad tool", type: "BadRequestError", code: 400 } }), "fatal", /bad tool/],
  ["of the credential", json({ error: { message: "who are you", type: "error", code: 401 } }), "auth", /who are you/],
  ["of the account", json({ error: { message: "no money", code: 402 } }), "quota", /no money/],
  [
    "in an event of that name",
    'event: error\ndata: {"message":"the backend is gone","code":500}\n\n',
    "retryable",
    /backend is gone/,
  ],
  ["that is no JSON", "event: error\ndata: something went wrong\n\n", "retryable", /malformed/],
  [
    "in the choice",
    json({ choices: [{ delta: {}, finish_reason: "error", error: { code: 502, message: "Provider returned error" } }] }),
    "retryable",
    /502: Provider returned error/,
  ],
  [
    "as an object",
    json({ object: "error", message: "maximum context length is 10", code: 400 }),
    "overflow",
    /maximum context length/,
  ],
  ["as a detail", json({ detail: "Internal" }), "retryable", /Internal/],
  ["as a detail with structure", json({ detail: [{ loc: ["body"], msg: "bad" }] }), "retryable", /bad/],
  ["without a word", json({ error: {} }), "retryable", /without words/],
  ["as the reason", chunk({}, "insufficient_system_resource"), "retryable", /resources/],
])("a failure in the stream %s is told as what it is", async (_name, event, kind, words) => {
  const events = await run([chunk({ content: "hi" }), event]);
  expect(failureOf(events)).toMatchObject({ kind, message: expect.stringMatching(words) });
  expect(events.at(-1)?.type).toBe("error");
});
