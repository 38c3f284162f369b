import { defineCommand, z } from "mortise/extension";

export default defineCommand({
  name: "set_session_name",
  group: "Session",
  summary: "Names the session; a name given here is never replaced by an automatic one.",
  concurrency: "serial",
  source: "both",
  params: z.object({ name: z.string() }),
  example: { params: { name: "Parser rewrite" }, failure: "Session name cannot be empty" },
  run(ctx, { name }) {
    ctx.conversation.log.setName(name, "user");
  },
});
