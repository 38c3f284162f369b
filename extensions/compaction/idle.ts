import { afterRuns, CompactionEnabled, type Context, defineExtension } from "mortise/extension";
import { autoCompact, isBlocked } from "./_auto.ts";
import { measure } from "./_tokens.ts";
import { idleEnabled, idleThresholdTokens, idleTimeoutSeconds } from "./settings.ts";

/** Compacts a large context while nothing is going on. Off unless `compaction.idleEnabled` is set. */
export default defineExtension({
  name: "idle-compaction",
  setup: (scope) =>
    afterRuns(scope, "idle compaction", {
      wait: (ctx) =>
        ctx.setting(idleEnabled) && ctx.setting(CompactionEnabled) ? ctx.setting(idleTimeoutSeconds) * 1000 : undefined,
      run: compactIdle,
    }),
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
