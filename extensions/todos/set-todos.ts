import { defineCommand, TodoPhase, Todos, z } from "mortise/extension";

export default defineCommand({
  name: "set_todos",
  group: "State",
  summary: "Replaces the plan; a status that is not known, a missing content or a missing list changes nothing",
  params: z.object({ phases: z.array(TodoPhase) }),
  result: z.object({ todoPhases: z.array(TodoPhase) }),
  concurrency: "serial",
  source: "both",
  example: {
    params: { phases: [{ id: "p1", name: "Build", tasks: [{ id: "t1", content: "Write the parser", status: "pending" }] }] },
    result: { todoPhases: [{ name: "Build", tasks: [{ content: "Write the parser", status: "pending" }] }] },
  },
  run(ctx, { phases }) {
    const slot = ctx.conversation.slot(Todos);
    slot.set(phases);
    return { todoPhases: slot.get() };
  },
});
