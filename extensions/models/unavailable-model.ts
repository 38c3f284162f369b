import { defineHook, Models, notice, sessionSwitched } from "mortise/extension";

/** Tells the host when a session goes on with another model than the one it was left with. */
export default defineHook(sessionSwitched, ({ conversation }, outer) => {
  const stored = conversation.log.model;
  const models = outer.tryUse(Models);
  if (stored === undefined || models === undefined) return;
  const { model } = conversation.selection;
  // Still selected: a prompt says what is missing.
  if (model?.provider === stored.provider && model.id === stored.modelId) return;
  const known = models.find(stored.provider, stored.modelId);
  if (known !== undefined && models.hasKey(stored.provider)) return;
  const why = known === undefined ? "it is not known here" : `there is no credential for ${stored.provider}`;
  const now = model === undefined ? "no model is selected" : `it goes on with ${model.provider}/${model.id}`;
  const message = `The model of this session, ${stored.provider}/${stored.modelId}, is not available (${why}): ${now}`;
  conversation.emit(notice, { level: "warning", message, source: "models" });
});
