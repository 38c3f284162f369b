// The thinking levels of the model at hand, as far as the model services can tell.
import { type Context, Models, THINKING_EFFORTS, type ThinkingLevel } from "mortise/extension";
import thinkingLevelChanged from "./thinking-level-changed.ts";

const order: readonly ThinkingLevel[] = ["off", ...THINKING_EFFORTS];

/** Weakest first; `off` alone when the model has no reasoning or there is no model. */
export function availableLevels(ctx: Context): ThinkingLevel[] {
  const { model } = ctx.conversation.selection;
  if (!model) return ["off"];
  const models = ctx.use(Models);
  return order.filter((level) => models.clamp(model, level) === level);
}

/** Chooses the nearest level the model has; tells the host when that is another one. */
export function applyLevel(ctx: Context, wanted: ThinkingLevel): ThinkingLevel {
  const { conversation } = ctx;
  const { model, thinkingLevel: before } = conversation.selection;
  const thinkingLevel = model ? ctx.use(Models).clamp(model, wanted) : wanted;
  if (thinkingLevel !== before) {
    conversation.select({ thinkingLevel });
    conversation.emit(thinkingLevelChanged, { thinkingLevel });
  }
  return thinkingLevel;
}
