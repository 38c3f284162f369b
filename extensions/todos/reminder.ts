// When a run ends with open todos the model is told once more, at most `todo.reminders.max` times per user prompt, and only
// when it has done something since the last reminder.
import {
  type AgentMessage,
  beforeAgentStart,
  type ConversationHandle,
  defineHook,
  defineSlot,
  Jobs,
  runEnded,
  TodoEnabled,
  TodoReminders,
  TodoRemindersMax,
  ToolsApprovalMode,
  z,
} from "mortise/extension";
import { openTodos } from "./_open.ts";
import todoReminder from "./todo-reminder.ts";

const Reminded = defineSlot({
  name: "todo reminders",
  schema: z.object({ attempts: z.number(), messages: z.number() }),
  initial: () => ({ attempts: 0, messages: 0 }),
});

export default [
  Reminded,
  defineHook(beforeAgentStart, ({ conversation, prompt }) => {
    if (prompt?.role === "user") conversation.slot(Reminded).set({ attempts: 0, messages: 0 });
  }),
  defineHook(runEnded, ({ conversation, status }, ctx) => {
    if (status !== "completed" || conversation.isSubagent) return;
    if (!ctx.setting(TodoEnabled) || !ctx.setting(TodoReminders)) return;
    // In plan mode the work is not to be done yet.
    if (ctx.setting(ToolsApprovalMode) === "plan") return;
    const todos = openTodos(conversation);
    const { steering, followUp } = conversation.queue;
    // The end of a job wakes the model by itself.
    if ((ctx.tryUse(Jobs)?.running(conversation) ?? 0) > 0) return;
    if (todos.length === 0 || steering.length + followUp.length > 0 || asksUser(conversation)) return;
    const slot = conversation.slot(Reminded);
    const { attempts, messages } = slot.get();
    const maxAttempts = ctx.setting(TodoRemindersMax);
    const worked = attempts === 0 || conversation.messages.slice(messages).some((message) => message.role === "toolResult");
    if (attempts >= maxAttempts || !worked) return;
    slot.set({ attempts: attempts + 1, messages: conversation.messages.length });
    conversation.emit(todoReminder, { todos, attempt: attempts + 1, maxAttempts });
    const list = todos.map((todo) => `- ${todo.content} (${todo.status})`).join("\n");
    const content = `These todos are still open:\n${list}\nGo on with them, or mark them as done or dropped with the todo tool. Stop only when you need the user.`;
    conversation
      .submitCustom({ role: "developer", content, timestamp: Date.now(), attribution: "agent" }, { delivery: "followUp" })
      .catch((error: unknown) => ctx.log.debug("A todo reminder was not delivered", { error: String(error) }));
  }),
];

/** The answer ends in a question to the user, or in something that is no ordinary stop. */
function asksUser(conversation: ConversationHandle): boolean {
  const last: AgentMessage | undefined = conversation.lastAssistant();
  if (last?.role !== "assistant" || last.stopReason !== "stop") return true;
  const text = last.content.map((block) => (block.type === "text" ? block.text : "")).join("");
  return /[?？]["')*_`\s]*$/.test(text);
}
