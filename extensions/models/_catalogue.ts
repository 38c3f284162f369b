// The models that are known without asking anyone, as data. Prices in US dollars per million tokens, sizes in tokens.
// Sources, read 2026-11-30: platform.claude.com/docs/en/models (overview pages, "Troubleshooting thinking", "Effort"),
// developers.openai.com/api/docs/models and /pricing, and the model lists of @anthropic-ai/sdk 1.14.0 and openai 6.49.0.
// Prices that rise with the length of the prompt (Claude Haiku 5.5 above 100k, OpenAI above 272k) stand here at their base.
import type { Model } from "mortise/extension";

export const CATALOGUE_DATE = "2026-11-30";

type Price = readonly [input: number, output: number, cacheRead: number, cacheWrite: number];

const vision = ["text", "image"] as const;
const low5 = ["low", "medium", "high", "xhigh", "max"] as const;

function price([input, output, cacheRead, cacheWrite]: Price): Model["cost"] {
  return { input, output, cacheRead, cacheWrite };
}

/** Claude prices follow one rule: a cache read costs a tenth of the input, a five-minute write a quarter more than it. */
function claude(id: string, name: string, input: number, output: number, rest: Partial<Model>): Model {
  return {
    id,
    name,
    api: "anthropic-messages",
    provider: "anthropic",
    baseUrl: "https://api.anthropic.com",
    reasoning: true,
    input: [...vision],
    cost: price([input, output, rounded(input / 10), rounded(input * 1.25)]),
    contextWindow: 1_000_000,
    maxTokens: 128_000,
    supportsTools: true,
    ...rest,
  };
}

function rounded(value: number): number {
  return Math.round(value * 1e6) / 1e6;
}

/** Adaptive models return their thinking only when asked for a summary. */
function adaptive(
  defaultLevel: "medium" | "high",
  off: "disabled" | "between_tools" | "never",
  efforts: readonly string[] = low5,
): Partial<Model> {
  return {
    thinking: { mode: "adaptive", efforts: [...efforts] as NonNullable<Model["thinking"]>["efforts"], defaultLevel, off },
    compat: { thinkingDisplay: "summarized" },
  };
}

const budget: Partial<Model> = {
  thinking: { mode: "budget", efforts: ["minimal", "low", "medium", "high", "xhigh"], defaultLevel: "medium", off: "omit" },
  contextWindow: 200_000,
  maxTokens: 64_000,
};

function gpt(id: string, name: string, cost: Price, rest: Partial<Model>): Model {
  return {
    id,
    name,
    api: "openai-completions",
    provider: "openai",
    baseUrl: "https://api.openai.com/v1",
    reasoning: false,
    input: [...vision],
    cost: price(cost),
    contextWindow: 400_000,
    maxTokens: 128_000,
    supportsTools: true,
    ...rest,
  };
}

function effort(efforts: readonly string[], off: "disabled" | "never"): Partial<Model> {
  return {
    reasoning: true,
    thinking: { mode: "effort", efforts: [...efforts] as NonNullable<Model["thinking"]>["efforts"], defaultLevel: "medium", off },
  };
}

/**
 * From GPT-5.4 on chat completions take tools only with `reasoning_effort: none`. An agent without tools is none, so these
 * models are listed without reasoning; those that refuse `none` (GPT-6.2 Sol) are not listed.
 */
const toolsWithoutReasoning: Partial<Model> = { contextWindow: 1_050_000, compat: { reasoningWithTools: false } };

/** The first model of a provider is what a new conversation with it starts with. */
export const catalogue: readonly Model[] = [
  claude("claude-opus-5-5", "Claude Opus 5.5", 4, 20, adaptive("medium", "never")),
  claude("claude-sonnet-5-5", "Claude Sonnet 5.5", 2, 10, adaptive("high", "between_tools")),
  claude("claude-haiku-5-5", "Claude Haiku 5.5", 0.1, 0.5, adaptive("medium", "disabled")),
  claude("claude-fable-5-2", "Claude Fable 5.2", 8, 40, adaptive("high", "never")),
  claude("claude-fable-5-1", "Claude Fable 5.1", 10, 50, adaptive("high", "never")),
  claude("claude-opus-5", "Claude Opus 5", 5, 25, adaptive("high", "disabled")),
  claude("claude-sonnet-5", "Claude Sonnet 5", 2, 10, adaptive("high", "disabled")),
  claude("claude-opus-4-8", "Claude Opus 4.8", 5, 25, adaptive("high", "disabled")),
  claude("claude-opus-4-7", "Claude Opus 4.7", 5, 25, adaptive("high", "disabled")),
  claude("claude-opus-4-6", "Claude Opus 4.6", 5, 25, {
    thinking: { mode: "adaptive", efforts: ["low", "medium", "high", "max"], defaultLevel: "high", off: "disabled" },
  }),
  claude("claude-sonnet-4-6", "Claude Sonnet 4.6", 3, 15, {
    thinking: { mode: "adaptive", efforts: ["low", "medium", "high", "max"], defaultLevel: "high", off: "disabled" },
    maxTokens: 64_000,
  }),
  claude("claude-haiku-4-5", "Claude Haiku 4.5", 1, 5, budget),
  claude("claude-opus-4-5", "Claude Opus 4.5", 5, 25, budget),

  gpt("gpt-6.1-sol", "GPT-6.1 Sol", [2, 10, 0.1, 2.5], toolsWithoutReasoning),
  gpt("gpt-6.1-terra", "GPT-6.1 Terra", [1, 5, 0.05, 1.25], toolsWithoutReasoning),
  gpt("gpt-6-sol", "GPT-6 Sol", [2, 10, 0.2, 2.5], toolsWithoutReasoning),
  gpt("gpt-6-luna", "GPT-6 Luna", [0.1, 0.5, 0.01, 0.125], toolsWithoutReasoning),
  gpt("gpt-5.6-terra", "GPT-5.6 Terra", [2, 12, 0.2, 2.5], toolsWithoutReasoning),
  gpt("gpt-5.6-luna", "GPT-5.6 Luna", [0.2, 1.2, 0.02, 0.25], toolsWithoutReasoning),
  gpt("gpt-5.4", "GPT-5.4", [2.5, 15, 0.25, 0], toolsWithoutReasoning),
  gpt("gpt-5.4-mini", "GPT-5.4 mini", [0.75, 4.5, 0.075, 0], { ...toolsWithoutReasoning, contextWindow: 400_000 }),
  gpt("gpt-5.2", "GPT-5.2", [1.75, 14, 0.175, 0], effort(["low", "medium", "high", "xhigh"], "disabled")),
  gpt("gpt-5.1", "GPT-5.1", [1.25, 10, 0.125, 0], effort(["low", "medium", "high"], "disabled")),
  gpt("gpt-5", "GPT-5", [1.25, 10, 0.125, 0], effort(["minimal", "low", "medium", "high"], "never")),
  gpt("gpt-5-mini", "GPT-5 mini", [0.25, 2, 0.025, 0], effort(["minimal", "low", "medium", "high"], "never")),
  gpt("gpt-5-nano", "GPT-5 nano", [0.05, 0.4, 0.005, 0], effort(["minimal", "low", "medium", "high"], "never")),
  gpt("gpt-4.1", "GPT-4.1", [2, 8, 0.5, 0], { contextWindow: 1_047_576, maxTokens: 32_768 }),
  gpt("gpt-4.1-mini", "GPT-4.1 mini", [0.4, 1.6, 0.1, 0], { contextWindow: 1_047_576, maxTokens: 32_768 }),
];

/** A service we know the way to. */
export interface KnownProvider {
  readonly api: string;
  readonly baseUrl: string;
  /** Environment variables that hold a key, the first that is set counts. */
  readonly keyNames: readonly string[];
  /** Environment variable with another address. */
  readonly baseUrlName?: string | undefined;
  /** Its models are asked for rather than listed here. */
  readonly discovery?: boolean | undefined;
}

export const knownProviders: Readonly<Record<string, KnownProvider>> = {
  anthropic: {
    api: "anthropic-messages",
    baseUrl: "https://api.anthropic.com",
    keyNames: ["ANTHROPIC_API_KEY"],
    baseUrlName: "ANTHROPIC_BASE_URL",
  },
  openai: {
    api: "openai-completions",
    baseUrl: "https://api.openai.com/v1",
    keyNames: ["OPENAI_API_KEY"],
    baseUrlName: "OPENAI_BASE_URL",
  },
  openrouter: {
    api: "openai-completions",
    baseUrl: "https://openrouter.ai/api/v1",
    keyNames: ["OPENROUTER_API_KEY"],
    discovery: true,
  },
};
