import { defineSetting, z } from "mortise/extension";

export const Enabled = defineSetting({
  name: "ttsr.enabled",
  schema: z.boolean(),
  default: true,
  summary: "Whether rules with a condition watch the answers of the model",
});
export const ContextMode = defineSetting<"discard" | "keep">({
  name: "ttsr.contextMode",
  schema: z.enum(["discard", "keep"]),
  default: "discard",
  summary: "Whether the model still sees the part of its answer that a rule cut off",
});
export const InterruptSetting = defineSetting<"always" | "prose-only" | "tool-only" | "never">({
  name: "ttsr.interruptMode",
  schema: z.enum(["always", "prose-only", "tool-only", "never"]),
  default: "always",
  summary: "What rules may cut off; otherwise they are told afterwards. A rule's own interruptMode goes first",
});
export const RepeatMode = defineSetting<"once" | "after-gap">({
  name: "ttsr.repeatMode",
  schema: z.enum(["once", "after-gap"]),
  default: "once",
  summary: "Whether a rule is told again after it was told once in a conversation",
});
export const RepeatGap = defineSetting({
  name: "ttsr.repeatGap",
  // Not less: a rule that may be told again at once could cut off every answer.
  schema: z.number().int().min(1),
  default: 10,
  summary: "Completed turns before a rule is told again in repeat mode after-gap",
});
export const BuiltinRules = defineSetting({
  name: "ttsr.builtinRules",
  schema: z.boolean(),
  default: true,
  summary: "Whether the rules that come with mortise are used",
});
export const DisabledRules = defineSetting<string[]>({
  name: "ttsr.disabledRules",
  schema: z.array(z.string()),
  default: [],
  summary: "Names of rules that are left out",
});

export default [Enabled, ContextMode, InterruptSetting, RepeatMode, RepeatGap, BuiltinRules, DisabledRules];
