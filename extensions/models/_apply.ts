// Chooses a model for a conversation and tells the host what changed.
import { type Context, defineSlot, type Model, Models, ThinkingLevel, z } from "mortise/extension";
import modelChanged from "./model-changed.ts";

/** The level that a model could not follow: the next one may. */
export const wantedLevel = defineSlot({
  name: "models.wanted-level",
  schema: z.object({ wanted: ThinkingLevel, given: ThinkingLevel }).optional(),
  initial: () => undefined,
});

/** Selects the model with the level it can follow; the frames go out only for what is different now. */
export function applyModel(ctx: Context, model: Model, wanted?: ThinkingLevel): void {
  const { conversation } = ctx;
  const { model: before, thinkingLevel: levelBefore } = conversation.selection;
  const slot = conversation.slot(wantedLevel);
  const kept = slot.get();
  // Another level than the one that was given is the user's own choice since then.
  const level = wanted ?? (kept?.given === levelBefore ? kept.wanted : levelBefore);
  const thinkingLevel = ctx.use(Models).clamp(model, level);
  slot.set(thinkingLevel === level ? undefined : { wanted: level, given: thinkingLevel });
  conversation.select({ model, thinkingLevel });
  if (before?.provider !== model.provider || before.id !== model.id) conversation.emit(modelChanged, { model });
  // The frame belongs to extensions/thinking; by name, so that either unit can be replaced.
  if (thinkingLevel !== levelBefore) conversation.emitRaw({ type: "thinking_level_changed", thinkingLevel });
}
