import { defineFrame, z } from "mortise/extension";

export default defineFrame({
  name: "prompt_result",
  summary:
    "An accepted prompt has ended without an agent turn; after protocol v2 is negotiated also sent when its run has ended.",
  scope: "process",
  source: "both",
  fields: z.object({
    id: z.union([z.string(), z.number()]).optional(),
    agentInvoked: z.boolean(),
    status: z.enum(["completed", "aborted", "error"]).optional().describe("v2 only"),
  }),
  example: { type: "prompt_result", id: "req_1", agentInvoked: false },
});
