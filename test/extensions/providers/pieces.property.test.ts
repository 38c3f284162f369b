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
const text = fc.constantFrom("", " ", "words", "größer 🧪", '"quoted"\\', "y".repeat(70_000));
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
  from: fc.nat(5),
  to: fc.nat(12),
  model: fc.constantFrom(...models),
  tools: fc.array(name.map(tool), { maxLength: 3 }),
});

it("a request that reuses parts of earlier ones equals one made from nothing", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(message, { maxLength: 12 }),
      fc.array(request, { minLength: 1, maxLength: 5 }),
      async (all, list) => {
        for (const { from, to, model, tools } of list) {
          const build = (messages: ModelMessage[]) => {
            const made = requestOf(model, { messages, tools });
            return model.api === "anthropic-messages" ? buildAnthropic(made) : buildOpenAI(made, "http://x.invalid/v1");
          };
          const messages = all.slice(from, from + to);
          const kept = await build(messages);
          const fresh = await build(structuredClone(messages));
          const sent = Buffer.from(kept.body).toString();
          expect(sent).toBe(Buffer.from(fresh.body).toString());
          expect(() => JSON.parse(sent)).not.toThrow();
        }
      },
    ),
    { numRuns: 60 },
  );
});
