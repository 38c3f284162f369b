// Which thinking levels a model has.
import { type Model, THINKING_EFFORTS, ThinkingLevel } from "mortise/extension";

const order: readonly ThinkingLevel[] = ["off", ...THINKING_EFFORTS];

/** Weakest first. `off` alone for models without reasoning, absent for those that always think. */
export function levelsOf(model: Model | undefined): ThinkingLevel[] {
  if (!model?.reasoning) return ["off"];
  const efforts = model.thinking?.efforts ?? ["low", "medium", "high"];
  const ascending = order.filter((level) => (efforts as readonly ThinkingLevel[]).includes(level));
  return model.thinking?.off === "never" && ascending.length > 0 ? ascending : ["off", ...ascending];
}

/** The level itself when the model has it, else the next weaker one it has, else its weakest. */
export function clampLevel(model: Model | undefined, level: ThinkingLevel): ThinkingLevel {
  const levels = levelsOf(model);
  const place = order.indexOf(level);
  if (level === "off") return levels[0] ?? "off";
  const weaker = levels.filter((candidate) => order.indexOf(candidate) <= place && candidate !== "off");
  return weaker.at(-1) ?? levels.find((candidate) => candidate !== "off") ?? "off";
}

/** A level by its name or an unambiguous beginning of two letters and more. */
export function parseLevel(text: string): ThinkingLevel | undefined {
  const exact = ThinkingLevel.safeParse(text.toLowerCase());
  if (exact.success) return exact.data;
  if (text.length < 2) return undefined;
  const matches = order.filter((level) => level.startsWith(text.toLowerCase()));
  return matches.length === 1 ? matches[0] : undefined;
}
