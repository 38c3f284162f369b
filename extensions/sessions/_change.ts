// What every command that puts another session in place has in common: the veto, the replacement, who is told.
import {
  BackgroundConversations,
  type BackgroundMove,
  type Context,
  type ConversationHandle,
  Conversations,
  type SessionChange,
  SlashCommands,
  sessionBeforeSwitch,
  sessionSwitched,
  z,
} from "mortise/extension";

export const backgroundMove = z.object({
  sessionId: z.string(),
  sessionFile: z.string().optional(),
  streaming: z.boolean(),
  displaced: z.array(z.string()),
  message: z.string(),
});

/** `data` of the commands that change the session. */
export const changeResult = z.object({
  cancelled: z.boolean().describe("An extension kept the session as it was"),
  background: backgroundMove.optional().describe("Present when a conversation moved to the background"),
});

type Reason = SessionChange["reason"];

/** True when an extension answers with a veto; then nothing has changed. */
export async function isVetoed(ctx: Context, reason: Reason, target?: string): Promise<boolean> {
  const answer = await ctx.hook(sessionBeforeSwitch, { conversation: ctx.conversation, reason, target });
  return answer?.cancel === true;
}

/** Puts `next` in place of the attached conversation and tells everybody; the one before is aborted and closed. */
export async function replaceWith(ctx: Context, next: ConversationHandle, reason: Reason): Promise<void> {
  const conversations = ctx.use(Conversations);
  const previousFile = conversations.attached.log.file;
  await conversations.replace(next);
  await announceChange(ctx, next, reason, previousFile);
}

/** Puts `next` in front; the conversation driven so far goes on behind it. */
export async function moveBehind(ctx: Context, next: ConversationHandle, reason: Reason): Promise<BackgroundMove | undefined> {
  const conversations = ctx.use(Conversations);
  const previousFile = conversations.attached.log.file;
  const move = await ctx.use(BackgroundConversations).moveBehind(next);
  // `next` itself, or its file opened again when it had ended meanwhile.
  await announceChange(ctx, conversations.attached, reason, previousFile);
  return move;
}

async function announceChange(ctx: Context, next: ConversationHandle, reason: Reason, previousFile: string | undefined) {
  const moved = ctx.derive({ locals: { conversation: next } });
  await moved.hook(sessionSwitched, { conversation: next, reason, previousFile });
  ctx.tryUse(SlashCommands)?.announce(true);
}
