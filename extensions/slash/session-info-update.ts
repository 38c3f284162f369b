import { defineFrame, z } from "mortise/extension";

export default defineFrame({
  name: "session_info_update",
  summary: "A slash command changed what a session is called",
  fields: z.object({ title: z.string().optional(), sessionId: z.string() }),
  scope: "conversation",
  source: "both",
  example: { type: "session_info_update", title: "Parser clean-up", sessionId: "01993b9c-7a00-7000-8000-000000000000" },
});
