import { afterRuns, type Context, defineExtension, Models } from "mortise/extension";
import { returnSlot } from "./_state.ts";

/** Brings a session back from a fallback model to its own, some time later and between two runs. */
export default defineExtension({
  name: "fallback-return",
  setup: (scope) =>
    afterRuns(scope, "fallback return", {
      wait({ conversation }) {
        const own = conversation.slot(returnSlot).get();
        return own && own.at - Date.now();
      },
      run: comeBack,
    }),
});

function comeBack(ctx: Context): void {
  const { conversation } = ctx;
  const slot = conversation.slot(returnSlot);
  const own = slot.get();
  // A run that began meanwhile schedules it again at its end.
  if (own === undefined || conversation.isStreaming || conversation.signal.aborted) return;
  slot.set(undefined);
  const { model: current, thinkingLevel: levelNow } = conversation.selection;
  const models = ctx.tryUse(Models);
  const model = models?.find(own.provider, own.id);
  if (model === undefined || `${current?.provider}/${current?.id}` !== own.fallback || !models?.hasKey(own.provider)) return;
  const thinkingLevel = models.clamp(model, own.thinkingLevel);
  conversation.select({ model, thinkingLevel });
  // By name: these frames belong to the units that choose models and levels by hand.
  conversation.emitRaw({ type: "model_changed", model });
  if (thinkingLevel !== levelNow) conversation.emitRaw({ type: "thinking_level_changed", thinkingLevel });
}
