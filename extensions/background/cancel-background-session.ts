import { CommandError, defineCommand, z } from "mortise/extension";
import { Background } from "./_token.ts";

export default defineCommand({
  name: "cancel_background_session",
  group: "Background conversations",
  summary: "Ends a background conversation; answers when it is disposed.",
  concurrency: "concurrent",
  source: "000",
  params: z.object({ sessionId: z.string() }),
  example: { params: { sessionId: "0193" }, failure: "No background conversation with id: 0193" },
  async run(ctx, { sessionId }) {
    const found = await ctx.use(Background).cancel(sessionId);
    if (!found) throw new CommandError(`No background conversation with id: ${sessionId}`, "not_found");
  },
});
