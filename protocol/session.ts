// State of a conversation as hosts see it.
import { z } from "zod";

export const TodoStatus = z.enum(["pending", "in_progress", "completed", "abandoned"]).meta({ id: "TodoStatus" });
export type TodoStatus = z.infer<typeof TodoStatus>;

/** Ids and other unknown fields are dropped (DESIGN §3 "todos"). */
export const TodoTask = z.object({ content: z.string(), status: TodoStatus }).meta({ id: "TodoTask" });
export type TodoTask = z.infer<typeof TodoTask>;

export const TodoPhase = z.object({ name: z.string(), tasks: z.array(TodoTask) }).meta({ id: "TodoPhase" });
export type TodoPhase = z.infer<typeof TodoPhase>;
