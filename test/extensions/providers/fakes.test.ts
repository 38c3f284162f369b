// The fakes refuse what the real services refuse; a provider test that passes against them means something.
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type FakeServer, startFakeAnthropic } from "../../support/fake-anthropic.ts";
import { startFakeOpenAI } from "../../support/fake-openai.ts";

const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

let fake: FakeServer;
afterEach(() => fake.close());

async function refusal(path: string, headers: Record<string, string>, body: unknown): Promise<string | undefined> {
  fake.script({ text: "ok" });
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const response = await fetch(`${fake.url}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: text,
  });
  await response.text();
  expect(fake.requests.at(-1)?.refusal === undefined).toBe(response.status === 200);
  return fake.requests.at(-1)?.refusal;
}

describe("fake-anthropic", () => {
  beforeEach(async () => {
    fake = await startFakeAnthropic();
  });
  const headers = { "x-api-key": "k", "anthropic-version": "2023-06-01" };
  const base = { model: "m", max_tokens: 10, stream: true };
  const user = (...content: unknown[]) => ({ role: "user", content });
  const text = (value: string) => ({ type: "text", text: value });
  const call = (id: string) => ({ role: "assistant", content: [{ type: "tool_use", id, name: "bash", input: {} }] });
  const result = (id: string) => ({ type: "tool_result", tool_use_id: id, content: "ok" });
  const image = (data: string, media_type: string) => ({ type: "image", source: { type: "base64", media_type, data } });
  const send = (change: object, use: Record<string, string> = headers) =>
    refusal("/v1/messages", use, { ...base, messages: [user(text("hi"))], ...change });

  it("accepts a good conversation", async () => {
    expect(
      await send({ messages: [user(text("hi")), call("a"), user(result("a"), image(png, "image/png"), text("go on"))] }),
    ).toBeUndefined();
  });

  it.each<[string, object]>([
    ["`tool_use` ids were found without", { messages: [user(text("hi")), call("a"), user(text("no"))] }],
    ["unexpected `tool_use_id`", { messages: [user(result("a"))] }],
    [
      "unexpected `tool_use_id`",
      { messages: [user(text("hi")), call("a"), user(result("a")), { role: "assistant", content: "x" }, user(result("a"))] },
    ],
    ["`tool_result` blocks must come first", { messages: [user(text("hi")), call("a"), user(text("no"), result("a"))] }],
    ["ids must be unique", { messages: [user(text("hi")), call("a"), user(result("a")), call("a"), user(result("a"))] }],
    ["must be non-empty", { messages: [user(text(""))] }],
    ["non-whitespace", { messages: [user(text("  "))] }],
    ["non-empty content", { messages: [user(text("hi")), { role: "assistant", content: [] }, user(text("x"))] }],
    ["invalid base64", { messages: [user(image("%%%", "image/png"))] }],
    ["appears to be image/png", { messages: [user(image(png, "image/jpeg"))] }],
    ["lone surrogate", { messages: [user(text("a\ud83d"))] }],
    ["first message must use", { messages: [{ role: "assistant", content: "hi" }] }],
    ["prefill", { messages: [user(text("hi")), { role: "assistant", content: "so" }] }],
    ["Unrecognized key", { top_secret: 1 }],
    ["max_tokens", { max_tokens: undefined }],
    ["greater than `thinking.budget_tokens`", { thinking: { type: "enabled", budget_tokens: 2000 } }],
    [
      "Expected `thinking`",
      {
        max_tokens: 5000,
        thinking: { type: "enabled", budget_tokens: 2000 },
        messages: [user(text("hi")), call("a"), user(result("a"))],
      },
    ],
    [
      "maximum of 4 blocks",
      { messages: [user(...[1, 2, 3, 4, 5].map((n) => ({ ...text(`t${n}`), cache_control: { type: "ephemeral" } })))] },
    ],
  ])("refuses: %s", async (expected, change) => {
    expect(await send(change)).toContain(expected);
  });

  it("refuses requests without key or version, and bodies that are no JSON", async () => {
    expect(await send({}, { "anthropic-version": "2023-06-01" })).toContain("x-api-key");
    expect(await send({}, { "x-api-key": "k" })).toContain("anthropic-version");
    expect(await refusal("/v1/messages", headers, "{")).toContain("not valid JSON");
    expect(await refusal("/v2/messages", headers, {})).toContain("Not found");
  });
});

describe("fake-openai", () => {
  beforeEach(async () => {
    fake = await startFakeOpenAI();
  });
  const headers = { authorization: "Bearer k" };
  const call = (id: string, args = "{}") => ({
    role: "assistant",
    content: null,
    tool_calls: [{ id, type: "function", function: { name: "bash", arguments: args } }],
  });
  const result = (id: string) => ({ role: "tool", tool_call_id: id, content: "ok" });
  const user = (content: unknown) => ({ role: "user", content });
  const send = (change: object, use: Record<string, string> = headers) =>
    refusal("/v1/chat/completions", use, { model: "m", stream: true, messages: [user("hi")], ...change });

  it("accepts a good conversation", async () => {
    expect(await send({ messages: [user("hi"), call("a"), result("a"), user("go on")] })).toBeUndefined();
  });

  it.each<[string, object]>([
    ["must be followed by tool messages", { messages: [user("hi"), call("a"), user("no")] }],
    ["must be followed by tool messages", { messages: [user("hi"), call("a")] }],
    ["must be a response to", { messages: [user("hi"), result("a")] }],
    ["not a JSON object", { messages: [user("hi"), call("a", "{"), result("a")] }],
    ["expected a string, got null", { messages: [user("hi"), { role: "assistant", content: null }] }],
    ["Invalid image URL", { messages: [user([{ type: "image_url", image_url: { url: "file:///etc/passwd" } }])] }],
    [
      "appears to be image/png",
      { messages: [user([{ type: "image_url", image_url: { url: `data:image/jpeg;base64,${png}` } }])] },
    ],
    ["lone surrogate", { messages: [user("a\udc00")] }],
    ["Unrecognized key", { top_secret: 1 }],
    ["tools", { tools: [] }],
    ["only allowed when 'tools'", { tool_choice: "auto" }],
    ["max_completion_tokens", { max_tokens: 1, max_completion_tokens: 1 }],
  ])("refuses: %s", async (expected, change) => {
    expect(await send(change)).toContain(expected);
  });

  it("refuses requests without a key", async () => {
    expect(await send({}, {})).toContain("API key");
  });
});
