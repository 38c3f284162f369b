// The Messages API provider against the strict fake: one server and one model for each test.
import type { AssistantMessage, Model, ModelMessage, ProviderRequest, ToolSchema } from "mortise/extension";
import { afterEach, beforeEach } from "vitest";
import anthropic from "../../../extensions/providers/anthropic.ts";
import transport from "../../../extensions/providers/transport.ts";
import { type FakeReply, type FakeServer, startFakeAnthropic } from "../../support/fake-anthropic.ts";
import { collect, providerContext, providerOf, requestOf } from "../../support/provider-context.ts";

export const provider = providerOf(anthropic);
export const bash: ToolSchema = {
  name: "bash",
  description: "Runs a command",
  parameters: { type: "object", properties: { command: { type: "string" } } },
};
export const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const usage = {
  input: 0,
  output: 0,
  cacheRead: 0,
  cacheWrite: 0,
  totalTokens: 0,
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
};

export let fake: FakeServer;
export let model: Model;

/** For the tests of the calling file. */
export function useAnthropic(): void {
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
}

/** For the rest of the test. */
export function changeModel(change: Partial<Model>): void {
  model = { ...model, ...change };
}

export const contextWith = (settings: Record<string, unknown> = {}, env: NodeJS.ProcessEnv = {}) =>
  providerContext({
    definitions: transport,
    settings,
    services: { launch: { home: "/nowhere", cwd: "/", options: {}, env } },
  });
export const run = (reply: FakeReply, change: Partial<ProviderRequest> & { text?: string } = {}, ctx = contextWith()) => {
  fake.script(reply);
  return collect(provider.stream(requestOf(model, { tools: [bash], ...change }), ctx));
};
export const assistant = (content: AssistantMessage["content"], change: Partial<AssistantMessage> = {}): AssistantMessage => ({
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
export const user = (content: string): ModelMessage => ({ role: "user", content, timestamp: 1 });
export const result = (toolCallId: string, text: string, isError = false): ModelMessage => ({
  role: "toolResult",
  toolCallId,
  toolName: "bash",
  content: [{ type: "text", text }],
  isError,
  timestamp: 1,
});
export const body = (n = 0) => fake.requests[n]?.body as Record<string, unknown>;
