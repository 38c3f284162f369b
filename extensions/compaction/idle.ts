import {
  CompactionEnabled,
  type Context,
  type ConversationHandle,
  defineExtension,
  defineHook,
  isAbort,
  runEnded,
  sessionClosing,
} from "mortise/extension";
import { autoCompact, isBlocked } from "./_auto.ts";
import { measure } from "./_tokens.ts";
import { idleEnabled, idleThresholdTokens, idleTimeoutSeconds } from "./settings.ts";

/** Compacts a large context while nothing is going on. Off unless `compaction.idleEnabled` is set. */
export default defineExtension({
  name: "idle-compaction",
  setup(scope) {
    const timers = new Map<ConversationHandle, NodeJS.Timeout>();
    const forget = (conversation: ConversationHandle) => {
      clearTimeout(timers.get(conversation));
      timers.delete(conversation);
    };
    scope.own(() => {
      for (const timer of timers.values()) clearTimeout(timer);
      timers.clear();
    }, "idle timers");
    const watch = defineHook(runEnded, ({ conversation }) => {
      forget(conversation);
      const ctx = scope.ctx.derive({ locals: { conversation } });
      if (!ctx.setting(idleEnabled) || !ctx.setting(CompactionEnabled)) return;
      const timer = setTimeout(() => {
        forget(conversation);
        compactIdle(ctx).catch((error: unknown) => {
          if (!isAbort(error)) ctx.reportError(scope.owner, "idle compaction", error);
        });
      }, ctx.setting(idleTimeoutSeconds) * 1000);
      timers.set(conversation, timer.unref());
    });
    scope.add(
      watch,
      defineHook(sessionClosing, ({ conversation }) => forget(conversation)),
    );
  },
});

async function compactIdle(ctx: Context): Promise<void> {
  const { conversation } = ctx;
  const { model } = conversation.selection;
  if (model === undefined || !ctx.setting(CompactionEnabled)) return;
  const sizes = await measure(ctx, model);
  if (sizes.total < ctx.setting(idleThresholdTokens) || isBlocked(ctx, model, sizes)) return;
  if (conversation.isStreaming || conversation.takenBy !== undefined || conversation.signal.aborted) return;
  // Taken, so that a prompt waits for the summary instead of racing it.
  const taken = conversation.take("compact");
  try {
    await autoCompact(ctx, "idle", taken.signal);
  } finally {
    taken.release();
  }
}
