import { definePromptSection, TodoEager, TodoEnabled } from "mortise/extension";

/** `todo.eager`: how strongly the model is told to plan before it works. */
export default definePromptSection({
  name: "todo eager",
  order: 35,
  stable: false,
  render(ctx) {
    const eager = ctx.setting(TodoEager);
    if (eager === "default" || !ctx.setting(TodoEnabled) || ctx.conversation.isSubagent) return undefined;
    return eager === "always"
      ? "Planning\nBegin every task by writing its steps down with the todo tool, before any other tool, however small it looks. Keep the plan up to date while you work."
      : "Planning\nWhen a task takes more than two steps, write them down with the todo tool first, and keep the plan up to date while you work.";
  },
});
