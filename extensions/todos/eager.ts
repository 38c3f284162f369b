// `todo.eager`: how strongly the model is told to plan before it works. The first prompt of a session is followed by the advice;
// with `always` the model has to call the todo tool first. Services that force no call, or not this model, leave it the choice: then no
// other tool works until there is a plan (agent-semantics §5 "todo_reminder", settings).
import {
  type AgentMessage,
  beforeAgentStart,
  type ConversationHandle,
  defineHook,
  defineSlot,
  providerRequest,
  runEnded,
  TodoEager,
  TodoEnabled,
  Todos,
  toolDecide,
  z,
} from "mortise/extension";

const ADVICE: Readonly<Record<string, string>> = {
  preferred: "If this takes more than two steps, write them down with the todo tool first, and keep the plan up to date.",
  always:
    "Write the steps of this task down with the todo tool before you use any other tool, however small it looks. Keep the plan up to date while you work.",
};

/** A model that cannot write a plan must be able to say so. */
const MAX_FORCED = 3;

const Owed = defineSlot({
  name: "plan owed",
  schema: z.object({ isOwed: z.boolean(), forced: z.number().int().describe("Requests that left no other choice") }),
  initial: () => ({ isOwed: false, forced: 0 }),
});

export default [
  Owed,
  defineHook(beforeAgentStart, (plan, ctx) => {
    const { conversation, prompt } = plan;
    const eager = ctx.setting(TodoEager);
    const content = ADVICE[eager];
    if (content === undefined || prompt?.role !== "user" || !ctx.setting(TodoEnabled) || !mayPlan(conversation)) return plan;
    conversation.slot(Owed).set({ isOwed: eager === "always", forced: 0 });
    const advice: AgentMessage = { role: "developer", content, timestamp: Date.now(), attribution: "agent" };
    return { ...plan, extraMessages: [...plan.extraMessages, advice] };
  }),
  defineHook(providerRequest, (value) => {
    const { conversation, request } = value;
    if (!owesPlan(conversation) || request.toolChoice !== undefined) return undefined;
    const { forced } = conversation.slot(Owed).update((owed) => ({ ...owed, forced: owed.forced + 1 }));
    return forced > MAX_FORCED ? undefined : { ...value, request: { ...request, toolChoice: { tool: "todo" } } };
  }),
  defineHook(toolDecide, ({ conversation, toolName }) => {
    if (toolName === "todo" || !owesPlan(conversation)) return undefined;
    return { block: true, reason: "Write the plan with the todo tool first: the user wants one for every task (todo.eager)." };
  }),
  defineHook(runEnded, ({ conversation }) => conversation.slot(Owed).set(Owed.initial())),
];

function owesPlan(conversation: ConversationHandle): boolean {
  return conversation.slot(Owed).get().isOwed && conversation.slot(Todos).get().length === 0;
}

/** Nothing was asked before, the host gave no plan, and the model has the tool. */
function mayPlan(conversation: ConversationHandle): boolean {
  if (conversation.isSubagent || conversation.log.firstUserMessage() !== undefined) return false;
  return conversation.slot(Todos).get().length === 0 && conversation.toolSchemas().some(({ name }) => name === "todo");
}
