import { defineStateField, TodoPhase, Todos, z } from "mortise/extension";

export default defineStateField({
  name: "todoPhases",
  schema: z.array(TodoPhase),
  read: (ctx) => ctx.conversation.slot(Todos).get(),
});
