import { definePromptSection, ToolsApprovalMode } from "mortise/extension";

/** Tells the model what the gate would tell it at every call. */
export default definePromptSection({
  name: "plan mode",
  order: 30,
  stable: false,
  render: (ctx) =>
    ctx.setting(ToolsApprovalMode) === "plan"
      ? "Plan mode\nOnly tools that read work now. Look into the task, then give a plan of the changes you would make; do not try to make them."
      : undefined,
});
