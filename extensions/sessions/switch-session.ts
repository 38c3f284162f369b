import { resolve } from "node:path";
import { BackgroundConversations, CommandError, Conversations, defineCommand, Launch, z } from "mortise/extension";
import { changeResult, isVetoed, moveBehind, replaceWith } from "./_change.ts";

/** A missing, empty or foreign file is refused, nothing is written and the current session stays (DESIGN §3). */
export default defineCommand({
  name: "switch_session",
  group: "Session",
  summary: "Opens a session file, or comes back to a background conversation whose turn still streams.",
  concurrency: "serial",
  source: "both",
  params: z.object({ sessionPath: z.string().min(1).describe("Relative to the working directory") }),
  result: changeResult,
  example: {
    params: { sessionPath: "/home/ada/.mortise/sessions/--home-ada--/2026-01-01_0193.jsonl" },
    result: { cancelled: false },
  },
  async run(ctx, { sessionPath }) {
    if (sessionPath.includes("\0")) throw new CommandError("sessionPath must not hold a NUL character", "invalid_params");
    const conversations = ctx.use(Conversations);
    const file = resolve(ctx.tryUse(Launch)?.cwd ?? ctx.conversation.cwd, sessionPath);
    const current = conversations.attached;
    if (conversations.byFile(file) === current) return { cancelled: false };
    const live = ctx.tryUse(BackgroundConversations)?.byFile(file);
    if (await isVetoed(ctx, "resume", file)) return { cancelled: true };
    if (live !== undefined) {
      const move = await moveBehind(ctx, live, "resume");
      return move === undefined ? { cancelled: false } : { cancelled: false, background: move };
    }
    await replaceWith(ctx, await conversations.open(file), "resume");
    return { cancelled: false };
  },
});
