import { defineSetting, z } from "mortise/extension";

export const thresholdTokens = defineSetting({
  name: "compaction.thresholdTokens",
  summary: "Tokens in context above which it is compacted; 0 leaves it to the percentage or the reserve",
  schema: z.number().min(0),
  default: 0,
});
export const thresholdPercent = defineSetting({
  name: "compaction.thresholdPercent",
  summary: "Share of the context window, 1 to 99, above which the context is compacted; 0 leaves it to the reserve",
  schema: z.number().min(0).max(99),
  default: 0,
});
export const reserveTokens = defineSetting({
  name: "compaction.reserveTokens",
  summary: "Tokens of the context window kept free for the next answer; at least 15 % of the window are",
  schema: z.number().min(0),
  default: 16_384,
});
export const keepRecentTokens = defineSetting({
  name: "compaction.keepRecentTokens",
  summary: "Tokens of the newest messages that a compaction keeps as they are",
  schema: z.number().min(0),
  default: 20_000,
});
export const blankOutputs = defineSetting({
  name: "compaction.blankOutputs",
  summary: "Whether old outputs of tools are left out of what is sent when that makes room enough without a summary",
  schema: z.boolean(),
  default: true,
});
export const blankProtectTokens = defineSetting({
  name: "compaction.blankProtectTokens",
  summary: "Tokens of the newest messages whose outputs are never left out",
  schema: z.number().min(0),
  default: 40_000,
});
export const blankSavedTokens = defineSetting({
  name: "compaction.blankSavedTokens",
  summary: "Tokens that leaving outputs out has to save at least",
  schema: z.number().min(1),
  default: 20_000,
});
export const autoContinue = defineSetting({
  name: "compaction.autoContinue",
  summary: "Whether the agent goes on by itself after a compaction when its answer was cut off at the output limit",
  schema: z.boolean(),
  default: true,
});
export const idleEnabled = defineSetting({
  name: "compaction.idleEnabled",
  summary: "Whether a large context is compacted while nothing is going on",
  schema: z.boolean(),
  default: false,
});
export const idleTimeoutSeconds = defineSetting({
  name: "compaction.idleTimeoutSeconds",
  summary: "Seconds without a run before an idle compaction",
  schema: z.number().min(0.01),
  default: 300,
});
export const idleThresholdTokens = defineSetting({
  name: "compaction.idleThresholdTokens",
  summary: "Tokens in context from which an idle compaction is worth its price",
  schema: z.number().min(0),
  default: 200_000,
});

export default [
  thresholdTokens,
  thresholdPercent,
  reserveTokens,
  keepRecentTokens,
  blankOutputs,
  blankProtectTokens,
  blankSavedTokens,
  autoContinue,
  idleEnabled,
  idleTimeoutSeconds,
  idleThresholdTokens,
];
