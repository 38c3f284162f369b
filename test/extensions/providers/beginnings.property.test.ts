// What is kept of earlier requests never shows: a request has the bytes it would have had without.
import fc from "fast-check";
import type { Model, ModelMessage, ToolSchema } from "mortise/extension";
import { expect, it } from "vitest";
import { buildRequest as buildAnthropic } from "../../../extensions/providers/_anthropic-request.ts";
import { buildRequest as buildOpenAI } from "../../../extensions/providers/_openai-request.ts";
import { requestOf } from "../../support/provider-context.ts";

const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const image = { type: "image" as const, data: png, mimeType: "image/png" };
const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
const usage = { ...cost, totalTokens: 0, cost: { ...cost, total: 0 } };
const base: Model = {
  id: "a",
  name: "A",
  api: "anthropic-messages",
  provider: "p",
  baseUrl: "",
  reasoning: true,
  input: ["text", "image"],
  cost,
  maxTokens: 9000,
};
const models: Model[] = [
  base,
  { ...base, id: "b", name: "B", input: ["text"] },
  { ...base, api: "openai-completions", compat: { replayReasoning: true } },
  { ...base, api: "openai-completions" },
];

// Ids and names that fall together in a service's alphabet, so that who comes first decides.
const id = fc.constantFrom("a|b", "a_b", "a.b", "plain");
const name = fc.constantFrom("x.y", "x_y", "read");
const text = fc.constantFrom("", " ", "words", "größer 🧪", '"quoted"\\', "z".repeat(12_000), "y".repeat(70_000));
const input = fc.oneof(
  text.map((value) => ({ type: "text" as const, text: value })),
  fc.constant(image),
);
const said = fc.oneof(
  text.map((value) => ({ type: "text" as const, text: value })),
  text.map((value) => ({ type: "thinking" as const, thinking: value, thinkingSignature: "s" })),
  fc.record({ type: fc.constant("toolCall" as const), id, name, arguments: fc.constantFrom({}, { a: 1 }) }),
);
const message: fc.Arbitrary<ModelMessage> = fc.oneof(
  fc.record({ role: fc.constant("user" as const), content: fc.array(input, { maxLength: 3 }), timestamp: fc.constant(1) }),
  fc.array(said, { maxLength: 3 }).map((content) => ({
    role: "assistant" as const,
    content,
    api: "anthropic-messages",
    provider: "p",
    model: "a",
    usage,
    stopReason: "stop" as const,
    timestamp: 1,
  })),
  fc.record({
    role: fc.constant("toolResult" as const),
    toolCallId: id,
    toolName: name,
    content: fc.array(input, { maxLength: 2 }),
    isError: fc.boolean(),
    timestamp: fc.constant(1),
  }),
);
const tool = (toolName: string): ToolSchema => ({ name: toolName, description: "", parameters: { type: "object" } });
const request = fc.record({
  // Mostly the same beginning, as in a conversation.
  from: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.nat(5)),
  count: fc.nat(24),
  sessionId: fc.constantFrom("s", "t", undefined),
  atOnce: fc.integer({ min: 1, max: 2 }),
  model: fc.constantFrom(...models),
  tools: fc.array(name.map(tool), { maxLength: 3 }),
});

it("a request that goes on from earlier ones equals one made from nothing, also while another is being made", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(message, { maxLength: 24 }),
      fc.array(request, { minLength: 1, maxLength: 8 }),
      async (all, list) => {
        for (const { from, count, model, tools, sessionId, atOnce } of list) {
          const build = (messages: ModelMessage[]) => {
            const made = requestOf(model, { messages, tools, sessionId });
            return model.api === "anthropic-messages" ? buildAnthropic(made) : buildOpenAI(made, "http://x.invalid/v1");
          };
          const messages = all.slice(from, from + count);
          const fresh = Buffer.from((await build(structuredClone(messages))).body).toString();
          const kept = await Promise.all(Array.from({ length: atOnce }, () => build(messages)));
          for (const { body, names } of kept) {
            expect(Buffer.from(body).toString()).toBe(fresh);
            for (const name of ["x.y", "x_y", "read"]) expect(names.from(names.to(name))).toBe(name);
          }
          expect(() => JSON.parse(fresh)).not.toThrow();
        }
      },
    ),
    { numRuns: 80 },
  );
});

it("what was written once is not written again", async () => {
  const words = "words ".repeat(100);
  const said = (index: number): ModelMessage =>
    index % 2 === 0
      ? { role: "user", content: [{ type: "text", text: `${index} ${words}` }], timestamp: 1 }
      : {
          role: "assistant",
          content: [{ type: "text", text: words }],
          api: base.api,
          provider: "p",
          model: "a",
          usage,
          stopReason: "stop",
          timestamp: 1,
        };
  for (const model of models) {
    let read = 0;
    const counted = (index: number): ModelMessage => {
      const message = said(index);
      const { content } = message;
      const get = () => {
        read++;
        return content;
      };
      return Object.defineProperty(message, "content", { get });
    };
    const messages = Array.from({ length: 2000 }, (_, index) => counted(index));
    const build = (list: ModelMessage[]) => {
      const made = requestOf(model, { messages: list, tools: [], sessionId: "s" });
      return model.api === "anthropic-messages" ? buildAnthropic(made) : buildOpenAI(made, "http://x.invalid/v1");
    };
    await build(messages.slice(0, 1990));
    read = 0;
    await build(messages);
    expect(read).toBeLessThan(500);
  }
});
