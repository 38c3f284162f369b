import { type Context, defineCommand, Model, Models, ThinkingLevel, z } from "mortise/extension";
import { applyModel } from "./_apply.ts";

export default defineCommand({
  name: "cycle_model",
  group: "Model",
  summary:
    "Chooses the next model of --models or enabledModels, else of all that have a credential; null when there is no other.",
  concurrency: "serial",
  source: "both",
  params: z.object({}),
  result: z.object({ model: Model, thinkingLevel: ThinkingLevel.optional(), isScoped: z.boolean() }).nullable(),
  example: { params: {}, result: null },
  run(ctx) {
    const scoped = ctx.use(Models).scoped();
    const candidates = candidatesOf(ctx, scoped);
    if (candidates.length < 2) return null;
    const { model: current } = ctx.conversation.selection;
    const place = candidates.findIndex((model) => model.provider === current?.provider && model.id === current.id);
    // A current model that is not in the list counts as its first.
    const next = candidates[(Math.max(place, 0) + 1) % candidates.length];
    if (next === undefined) return null;
    applyModel(ctx, next);
    return { model: next, thinkingLevel: ctx.conversation.selection.thinkingLevel, isScoped: scoped !== undefined };
  },
});

/** Models that can be used. The offline ones take part only where they were asked for. */
function candidatesOf(ctx: Context, scoped: Model[] | undefined): Model[] {
  const available = ctx.use(Models).available();
  if (scoped) {
    const usable = new Set(available.map((model) => `${model.provider}/${model.id}`));
    return scoped.filter((model) => usable.has(`${model.provider}/${model.id}`));
  }
  const isOffline = ctx.conversation.selection.model?.provider === "offline";
  return available.filter((model) => isOffline || model.provider !== "offline");
}
