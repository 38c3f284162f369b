import { CommandError, Conversations, defineCommand, z } from "mortise/extension";
import { changeResult, isVetoed, moveBehind, replaceWith } from "./_change.ts";

export default defineCommand({
  name: "new_session",
  group: "Session",
  summary: "Starts an empty session; model, thinking level, queue modes and what the host contributed stay.",
  concurrency: "serial",
  source: "both",
  params: z.object({
    parentSession: z.string().optional().describe("Lineage recorded in the new session"),
    background: z.boolean().optional().describe("Lets a streaming turn go on in the background"),
  }),
  result: changeResult,
  example: {
    params: {},
    result: { cancelled: false },
    failure: "background and parentSession cannot be combined",
  },
  async run(ctx, { parentSession, background }) {
    if (background === true && parentSession !== undefined && parentSession !== "") {
      throw new CommandError("background and parentSession cannot be combined", "invalid_params");
    }
    if (parentSession?.includes("\0")) throw new CommandError("parentSession must not hold a NUL character", "invalid_params");
    if (await isVetoed(ctx, "new")) return { cancelled: true };
    const conversations = ctx.use(Conversations);
    const next = conversations.create({ parentSession });
    if (background === true && ctx.conversation.isStreaming) {
      const move = await moveBehind(ctx, next, "new");
      return move === undefined ? { cancelled: false } : { cancelled: false, background: move };
    }
    await replaceWith(ctx, next, "new");
    return { cancelled: false };
  },
});
