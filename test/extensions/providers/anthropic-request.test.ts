// What is sent to the Messages API.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { ProviderRequest } from "mortise/extension";
import { describe, expect, it } from "vitest";
import { failureOf } from "../../support/provider-context.ts";
import {
  assistant,
  bash,
  body,
  changeModel,
  contextWith,
  fake,
  png,
  provider,
  result,
  run,
  useAnthropic,
  user,
} from "./_anthropic.ts";

useAnthropic();

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
      changeModel({ maxTokens: limit });
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

    changeModel({ maxTokens: 64_000 });
    const configured = contextWith({ thinkingBudgets: { low: 4000 } });
    await run({ text: "ok" }, { thinkingLevel: "low", maxTokens: 100 }, configured);
    expect(fake.requests.at(-1)?.body).toMatchObject({ thinking: { budget_tokens: 4000 } });

    const adaptive = { mode: "adaptive" as const, efforts: ["low" as const, "max" as const] };
    changeModel({ thinking: { ...adaptive, off: "between_tools" }, compat: { thinkingDisplay: "summarized" } });
    expect(await sent({ thinkingLevel: "max" })).toEqual({
      max_tokens: 64_000,
      thinking: { type: "adaptive", display: "summarized" },
      output_config: { effort: "max" },
    });
    changeModel({ thinking: { ...adaptive, off: "disabled" } });
    expect(await sent({ thinkingLevel: "off" })).toEqual({ max_tokens: 64_000, thinking: { type: "disabled" } });
    changeModel({ thinking: { ...adaptive, off: "never" } });
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
