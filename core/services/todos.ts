// The plan of a conversation. The slot is shared by name: the model's tool and the host's command write it.
import { z } from "zod";
import { type TodoPhase, TodoPhase as TodoPhaseSchema } from "../../protocol/session.ts";
import { defineSlot } from "../agent/slot.ts";
import type { SessionEntry } from "../session/entry.ts";
import type { SessionLog } from "../session/log.ts";

/** Phases in order. Replace the array, never change it: it is serialised again only when it is another one. */
export const Todos = defineSlot<TodoPhase[]>({
  name: "todos",
  schema: z.array(TodoPhaseSchema),
  initial: () => [],
  persist: true,
  derive: planOf,
});

/** A plan as oh-my-pi and veyyon leave it: in the details of a `todo` result, or where a person edited it. */
const Foreign = z.object({
  phases: z.array(
    z.object({
      name: z.string(),
      tasks: z.array(
        z.object({ content: z.string(), status: z.enum(["pending", "in_progress", "completed", "abandoned", "blocked"]) }),
      ),
    }),
  ),
});

/** The last plan on the path, without what is over (agent-semantics §3.3). */
function planOf(log: SessionLog): TodoPhase[] | undefined {
  for (const entry of log.path().reverse()) {
    const candidate = candidateIn(entry);
    const found = candidate === undefined ? undefined : Foreign.safeParse(candidate);
    if (!found?.success) continue;
    const phases = found.data.phases.map(({ name, tasks }) => ({
      name,
      tasks: tasks.flatMap(({ content, status }): TodoPhase["tasks"] => {
        if (status === "completed" || status === "abandoned") return [];
        return [{ content, status: status === "in_progress" ? status : "pending" }];
      }),
    }));
    return phases.filter((phase) => phase.tasks.length > 0);
  }
  return undefined;
}

function candidateIn(entry: SessionEntry): unknown {
  if (entry.type === "custom") return "customType" in entry && entry.customType === "user_todo_edit" ? entry["data"] : undefined;
  // Looked at before it is parsed: a long history holds many results of other tools, and a failed parse is dear.
  if (entry.type !== "message" || entry.message.role !== "toolResult" || entry.message.toolName !== "todo") return undefined;
  const result = TodoResult.safeParse(entry.message);
  return result.success && result.data.isError !== true ? result.data.details : undefined;
}

const TodoResult = z.object({
  role: z.literal("toolResult"),
  toolName: z.literal("todo"),
  isError: z.boolean().optional(),
  details: z.unknown(),
});
