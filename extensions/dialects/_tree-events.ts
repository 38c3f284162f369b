// `session_before_tree` and `session_tree`: only `navigateTree` walks the tree in place, so its points are ours.
import { type CancelAnswer, type ConversationHandle, defineHook, defineHookPoint } from "mortise/extension";
import { call } from "./_events.ts";
import type { Handler, Runtime } from "./_runtime.ts";

export interface TreeMove {
  readonly conversation: ConversationHandle;
  readonly targetId: string;
  readonly oldLeafId: string | null;
}

export const treeMoving = defineHookPoint<TreeMove, CancelAnswer>({
  name: "dialects.treeMoving",
  combine: "first",
  summary: "Before a conversation moves to another entry of its session tree: answer with `cancel` to stay",
});

export const treeMoved = defineHookPoint<TreeMove>({
  name: "dialects.treeMoved",
  combine: "series",
  summary: "A conversation moved to another entry of its session tree",
});

export function beforeTreeHook(runtime: Runtime, handler: Handler) {
  return defineHook(
    treeMoving,
    async ({ targetId, oldLeafId }, ctx) => {
      const preparation = {
        targetId,
        oldLeafId,
        commonAncestorId: null,
        entriesToSummarize: [],
        userWantsSummary: false,
      };
      const answer = await call(runtime, ctx, handler, {
        type: "session_before_tree",
        preparation,
        signal: ctx.signal,
      });
      return answer?.["cancel"] === true ? { cancel: true } : undefined;
    },
    { attachedOnly: true },
  );
}

export function treeHook(runtime: Runtime, handler: Handler) {
  return defineHook(
    treeMoved,
    async ({ targetId, oldLeafId }, ctx) => {
      await call(runtime, ctx, handler, { type: "session_tree", newLeafId: targetId, oldLeafId, fromExtension: true });
    },
    { attachedOnly: true },
  );
}
