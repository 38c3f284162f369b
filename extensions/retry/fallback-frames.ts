import { defineFrame, z } from "mortise/extension";

export const applied = defineFrame({
  name: "retry_fallback_applied",
  summary: "Retries of a model are used up; the run goes on with another one.",
  scope: "conversation",
  source: "mortise",
  fields: z.object({ from: z.string(), to: z.string(), role: z.string(), reason: z.string().optional() }),
  example: { type: "retry_fallback_applied", from: "anthropic/a", to: "openai/b", role: "default" },
});

export const succeeded = defineFrame({
  name: "retry_fallback_succeeded",
  summary: "A fallback model answered.",
  scope: "conversation",
  source: "mortise",
  fields: z.object({ model: z.string(), role: z.string() }),
  example: { type: "retry_fallback_succeeded", model: "openai/b", role: "default" },
});

export default [applied, succeeded];
