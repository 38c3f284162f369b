// The plan of a conversation. The slot is shared by name: the model's tool and the host's command write it.
import { z } from "zod";
import { type TodoPhase, TodoPhase as TodoPhaseSchema } from "../../protocol/session.ts";
import { defineSlot } from "../agent/slot.ts";

/** Phases in order. Replace the array, never change it: it is serialised again only when it is another one. */
export const Todos = defineSlot<TodoPhase[]>({
  name: "todos",
  schema: z.array(TodoPhaseSchema),
  initial: () => [],
  persist: true,
});
