import { defineFrame, z } from "mortise/extension";

/** Declared for hosts that know it; a plan is never cleared behind the model's back, so it is not sent. */
export default defineFrame({
  name: "todo_auto_clear",
  summary: "Reserved: finished todos were taken out of the plan",
  fields: z.object({}),
  scope: "conversation",
  source: "both",
  example: { type: "todo_auto_clear" },
});
