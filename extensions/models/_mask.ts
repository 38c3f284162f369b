// Secrets of the daemon in what tools give: a file or a command may show the credential store, the conversation must not keep it.
import { defineHook, redacted, toolFinished, toolProgress } from "mortise/extension";

/** Last, so that nothing is added to the result after it. */
const LAST = { priority: 1000 };

export const maskResults = defineHook(
  toolFinished,
  (finished, ctx) => {
    const result = redacted(ctx, finished.result);
    return result === finished.result ? undefined : { ...finished, result };
  },
  LAST,
);

export const maskProgress = defineHook(
  toolProgress,
  (progress, ctx) => {
    const partial = redacted(ctx, progress.partial);
    return partial === progress.partial ? undefined : { ...progress, partial };
  },
  LAST,
);
