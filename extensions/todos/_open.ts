import { type ConversationHandle, Todos, type TodoTask } from "mortise/extension";

/** Tasks of the plan that are not over. */
export function openTodos(conversation: ConversationHandle): TodoTask[] {
  const tasks = conversation
    .slot(Todos)
    .get()
    .flatMap((phase) => phase.tasks);
  return tasks.filter((task) => task.status === "pending" || task.status === "in_progress");
}
