import { defineSetting, z } from "mortise/extension";

export const maxRetries = defineSetting({
  name: "retry.maxRetries",
  summary: "How often a failed model call is tried again",
  schema: z.number().int().min(0),
  default: 10,
});
export const baseDelayMs = defineSetting({
  name: "retry.baseDelayMs",
  summary: "Milliseconds before the first retry; doubles with each further one",
  schema: z.number().min(0),
  default: 500,
});
export const maxBackoffMs = defineSetting({
  name: "retry.maxBackoffMs",
  summary: "Longest wait between retries that the server did not ask for",
  schema: z.number().min(0),
  default: 8000,
});
export const maxDelayMs = defineSetting({
  name: "retry.maxDelayMs",
  summary: "Longest wait a server may ask for; a longer one ends the run with an error. 0 lifts the cap",
  schema: z.number(),
  default: 300_000,
});
export const fallbackChains = defineSetting({
  name: "retry.fallbackChains",
  summary: "Model selector → models to go on with when its retries are used up",
  schema: z.record(z.string(), z.array(z.string())),
  default: {},
});

export const fallbackReturnSeconds = defineSetting({
  name: "retry.fallbackReturnSeconds",
  summary: "Seconds after which a session that went on with a fallback model comes back to its own; 0 stays with the fallback",
  schema: z.number().min(0).max(2_000_000),
  default: 300,
});

export default [maxRetries, baseDelayMs, maxBackoffMs, maxDelayMs, fallbackChains, fallbackReturnSeconds];
