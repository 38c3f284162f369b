// What the setting `enabledModels` leaves to choose from.
import { type Context, type Model, Models } from "mortise/extension";
import { selectAll } from "./_selectors.ts";
import { enabledModels } from "./_settings.ts";

export function isEnabled(ctx: Context, model: Model): boolean {
  const entries = ctx.setting(enabledModels);
  if (entries.length === 0) return true;
  return selectAll(entries, ctx.use(Models).all()).some(
    ({ model: enabled }) => enabled.provider === model.provider && enabled.id === model.id,
  );
}
