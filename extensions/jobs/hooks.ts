import { aborting, defineHook, Jobs, runEnded, sessionClosing } from "mortise/extension";
import { JobTable } from "./_table.ts";

/** What ended while the run went on continues it; after an abort or a failure it waits for the next prompt. */
const delivered = defineHook(runEnded, ({ conversation, status }, ctx) => {
  const jobs = ctx.tryUse(Jobs);
  if (jobs instanceof JobTable) jobs.deliver(conversation, status === "completed" ? "continue" : "nextTurn");
});

/** `abort` means everything that works for the conversation. */
const aborted = defineHook(aborting, ({ conversation }, ctx) => ctx.tryUse(Jobs)?.cancelAll(conversation));

/** Jobs are owned: a change of session ends those of the session that is closed, and no others. */
const closed = defineHook(sessionClosing, ({ conversation }, ctx) => ctx.tryUse(Jobs)?.cancelAll(conversation));

export default [delivered, aborted, closed];
