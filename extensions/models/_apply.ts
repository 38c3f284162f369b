// Chooses a model for a conversation and tells the host what changed.
import { type Context, type Model, Models, type ThinkingLevel } from "mortise/extension";
import modelChanged from "./model-changed.ts";

/** Selects the model with the level it can follow; the frames go out only for what is different now. */
export function applyModel(ctx: Context, model: Model, wanted?: ThinkingLevel): void {
  const { conversation } = ctx;
  const { model: before, thinkingLevel: levelBefore } = conversation.selection;
  const thinkingLevel = ctx.use(Models).clamp(model, wanted ?? levelBefore);
  conversation.select({ model, thinkingLevel });
  if (before?.provider !== model.provider || before.id !== model.id) conversation.emit(modelChanged, { model });
  // The frame belongs to extensions/thinking; by name, so that either unit can be replaced.
  if (thinkingLevel !== levelBefore) conversation.emitRaw({ type: "thinking_level_changed", thinkingLevel });
}
