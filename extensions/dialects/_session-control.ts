// What only command handlers may do: switch, fork and walk sessions, reload, wait.
import { type Context, Extensions, type SlashContext } from "mortise/extension";
import { createContext, extend } from "./_context.ts";
import { promptOptions } from "./_events.ts";
import type { Runtime } from "./_runtime.ts";
import { isObject } from "./_schema.ts";
import { createSessionWriter, moveTo } from "./_session-manager.ts";
import { treeMoved, treeMoving } from "./_tree-events.ts";
import { runCancellable } from "./_wire.ts";

type Cancelled = { cancelled: boolean };

/** The context of a slash command's handler. */
export function createCommandContext(runtime: Runtime, ctx: SlashContext): object {
  const branch = (entryId: string, options?: unknown) =>
    replaceSession(runtime, ctx, "branch", { entryId: String(entryId) }, options);
  return extend(createContext(runtime, ctx), ctx, {
    waitForIdle: () => ctx.conversation.whenIdle(),
    newSession: (options?: unknown) => {
      const parent = isObject(options) ? options["parentSession"] : undefined;
      return replaceSession(runtime, ctx, "new_session", typeof parent === "string" ? { parentSession: parent } : {}, options);
    },
    switchSession: (path: string, options?: unknown) =>
      replaceSession(runtime, ctx, "switch_session", { sessionPath: String(path) }, options),
    fork: branch,
    branch,
    navigateTree: (targetId: string, options?: unknown) => navigateTree(runtime, ctx, String(targetId), options),
    reload: async () => {
      await ctx.use(Extensions).reload();
    },
    getSystemPromptOptions: () => promptOptions(ctx, ctx.conversation),
    output: (text: string) => ctx.output(String(text)),
  });
}

/** `setup` fills the new session before anybody uses it; `withSession` goes on in it. */
async function replaceSession(
  runtime: Runtime,
  ctx: Context,
  command: string,
  params: Record<string, unknown>,
  options: unknown,
): Promise<Cancelled> {
  const outcome = await runCancellable(ctx, command, params);
  if (outcome.cancelled || !isObject(options)) return outcome;
  // The command's own conversation is closed now: what follows belongs to the attached one.
  const next = runtime.scope.ctx;
  const { setup, withSession } = options;
  if (typeof setup === "function") await setup(createSessionWriter(next));
  if (typeof withSession === "function") await runtime.run(next, () => withSession(createContext(runtime, next)));
  return outcome;
}

async function navigateTree(runtime: Runtime, ctx: Context, targetId: string, options: unknown): Promise<Cancelled> {
  if (isObject(options) && options["summarize"] === true) {
    runtime.warnOnce("navigateTree.summarize", "navigateTree moves without a summary of the branch that is left");
  }
  await ctx.conversation.whenIdle();
  const { conversation } = ctx;
  const move = { conversation, targetId, oldLeafId: conversation.log.leafId };
  if ((await ctx.hook(treeMoving, move))?.cancel === true) return { cancelled: true };
  moveTo(ctx, targetId);
  await ctx.hook(treeMoved, move);
  return { cancelled: false };
}
