// What an extension does to a conversation some time after a run, unless another one ends before. One timer per conversation, gone
// with the session, the conversation and the extension.
import type { Context } from "../kernel/context.ts";
import type { MaybePromise, SetupScope } from "../kernel/definition.ts";
import { isAbort } from "../kernel/errors.ts";
import { defineHook } from "../kernel/hooks.ts";
import type { ConversationHandle } from "./conversation-types.ts";
import { runEnded, sessionClosing } from "./hook-points.ts";

/** The longest wait a timer of Node knows. */
const MAX_WAIT_MS = 2 ** 31 - 1;

export interface AfterRuns {
  /** Asked at the end of each run: milliseconds from then on, or undefined for nothing. */
  wait(ctx: Context): number | undefined;
  /** `ctx` is the conversation's. A run may have begun meanwhile: its end asks again. */
  run(ctx: Context): MaybePromise<void>;
}

/** Does something a while after runs. What it throws is reported under `name`. */
export function afterRuns(scope: SetupScope, name: string, { wait, run }: AfterRuns): void {
  const timers = new Map<ConversationHandle, NodeJS.Timeout>();
  const forget = (conversation: ConversationHandle) => {
    clearTimeout(timers.get(conversation));
    timers.delete(conversation);
  };
  const begin = async (ctx: Context) => {
    try {
      await run(ctx);
    } catch (error) {
      if (!isAbort(error)) ctx.reportError(scope.owner, name, error);
    }
  };
  scope.own(() => {
    for (const timer of timers.values()) clearTimeout(timer);
    timers.clear();
  }, name);
  scope.add(
    defineHook(runEnded, ({ conversation }) => {
      forget(conversation);
      const ctx = scope.ctx.derive({ locals: { conversation } });
      const waitMs = wait(ctx);
      if (waitMs === undefined) return;
      const due = () => {
        forget(conversation);
        void begin(ctx);
      };
      timers.set(conversation, setTimeout(due, Math.min(Math.max(0, waitMs), MAX_WAIT_MS)).unref());
    }),
    defineHook(sessionClosing, ({ conversation }) => forget(conversation)),
  );
}
