// A plan that is forgotten over the work: after a number of calls that changed something the model is told to bring it up to date
// (agent-semantics §5 "Mid-run nudge"). No frame tells of it.
import {
  beforeAgentStart,
  type Context,
  defineHook,
  defineSlot,
  TodoEnabled,
  TodoReminders,
  turnEnded,
  z,
} from "mortise/extension";
import { openTodos } from "./_open.ts";

const CALLS = 12;
/** For each prompt of a person. */
const MAX_HINTS = 2;

const Work = defineSlot({
  name: "work beside the plan",
  schema: z.object({ calls: z.number(), hints: z.number() }),
  initial: () => ({ calls: 0, hints: 0 }),
});

export default [
  Work,
  defineHook(beforeAgentStart, ({ conversation, prompt }) => {
    if (prompt?.role === "user") conversation.slot(Work).set({ calls: 0, hints: 0 });
  }),
  defineHook(turnEnded, ({ conversation, toolResults, continues, signal }, ctx) => {
    if (!continues || signal.aborted || conversation.isSubagent || !ctx.setting(TodoEnabled) || !ctx.setting(TodoReminders))
      return;
    const slot = conversation.slot(Work);
    let { calls, hints } = slot.get();
    for (const { toolName, isError } of toolResults) {
      if (isError) continue;
      if (toolName === "todo") calls = 0;
      else if (changesSomething(ctx, toolName)) calls++;
    }
    const isDue = calls >= CALLS && hints < MAX_HINTS && openTodos(conversation).length > 0;
    slot.set(isDue ? { calls: 0, hints: hints + 1 } : { calls, hints });
    if (!isDue) return;
    conversation.queue.add("steering", {
      role: "custom",
      customType: "todo-nudge",
      content: `You have changed things ${calls} times since you last touched your plan. Bring it up to date with the todo tool, then go on.`,
      display: false,
      attribution: "agent",
      timestamp: Date.now(),
    });
  }),
];

function changesSomething(ctx: Context, tool: string): boolean {
  // One that says it for each call (`job`) does not work on the project either way.
  const { readOnly } = ctx.registry.get("tool", tool)?.definition ?? {};
  return readOnly === undefined || readOnly === false;
}
