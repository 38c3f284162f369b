import { defineFrame, TodoTask, z } from "mortise/extension";

export default defineFrame({
  name: "todo_reminder",
  summary: "The model stopped with open todos and is told to go on",
  fields: z.object({
    todos: z.array(TodoTask).describe("The open ones"),
    attempt: z.number().int().describe("From 1"),
    maxAttempts: z.number().int(),
  }),
  scope: "conversation",
  source: "both",
  example: { type: "todo_reminder", todos: [{ content: "Write the parser", status: "pending" }], attempt: 1, maxAttempts: 3 },
});
