import {
  type Context,
  type ConversationHandle,
  defineExtension,
  defineHook,
  Models,
  runEnded,
  sessionClosing,
} from "mortise/extension";
import { returnSlot } from "./_state.ts";

/** Brings a session back from a fallback model to its own, some time later and between two runs. */
export default defineExtension({
  name: "fallback-return",
  setup(scope) {
    const timers = new Map<ConversationHandle, NodeJS.Timeout>();
    const forget = (conversation: ConversationHandle) => {
      clearTimeout(timers.get(conversation));
      timers.delete(conversation);
    };
    scope.own(() => {
      for (const timer of timers.values()) clearTimeout(timer);
      timers.clear();
    }, "fallback timers");
    const schedule = defineHook(runEnded, ({ conversation }) => {
      forget(conversation);
      const own = conversation.slot(returnSlot).get();
      if (own === undefined) return;
      const timer = setTimeout(
        () => {
          forget(conversation);
          comeBack(scope.ctx.derive({ locals: { conversation } }));
        },
        Math.max(0, own.at - Date.now()),
      );
      timers.set(conversation, timer.unref());
    });
    scope.add(
      schedule,
      defineHook(sessionClosing, ({ conversation }) => forget(conversation)),
    );
  },
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
