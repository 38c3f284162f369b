// Models and thinking levels.
import { z } from "zod";

export const ThinkingLevel = z.enum(["off", "minimal", "low", "medium", "high", "xhigh", "max"]).meta({ id: "ThinkingLevel" });
export type ThinkingLevel = z.infer<typeof ThinkingLevel>;

/** The levels that ask a model to think, weakest first. */
export const THINKING_EFFORTS = ["minimal", "low", "medium", "high", "xhigh", "max"] as const;
export type ThinkingEffort = (typeof THINKING_EFFORTS)[number];

export const Model = z
  .object({
    id: z.string(),
    name: z.string(),
    api: z.string().describe("Which provider contribution speaks to it, e.g. anthropic-messages"),
    provider: z.string(),
    baseUrl: z.string(),
    reasoning: z.boolean(),
    input: z.array(z.enum(["text", "image"])),
    cost: z
      .object({ input: z.number(), output: z.number(), cacheRead: z.number(), cacheWrite: z.number() })
      .describe("US dollars per million tokens"),
    contextWindow: z.number().int().optional(),
    maxTokens: z.number().int().optional(),
    thinking: z
      .object({
        mode: z.enum(["budget", "effort", "adaptive"]),
        efforts: z.array(z.enum(THINKING_EFFORTS)),
        defaultLevel: ThinkingLevel.optional(),
        off: z
          .enum(["omit", "disabled", "between_tools", "never"])
          .optional()
          .describe("How a request turns thinking off; never: the model always thinks"),
      })
      .optional(),
    supportsTools: z.boolean().optional(),
    requestModelId: z.string().optional().describe("The id sent to the provider when it differs from id"),
    compat: z.record(z.string(), z.unknown()).optional().describe("What its server does differently; read by the provider"),
  })
  .meta({ id: "Model" });
export type Model = z.infer<typeof Model>;
