// What a call of `task` may look like: several subagents at once, or one. Both are understood whatever is offered.
import { z } from "mortise/extension";

const one = {
  name: z.string().min(1).optional().describe("Short name by which you recognise it"),
  agent: z.string().min(1).optional().describe("Kind of agent; task when left out"),
  task: z.string().min(1).describe("What to do: complete and self-contained, since it sees nothing of this conversation"),
  description: z.string().optional().describe("The same in three to six words, for people"),
  isolated: z.boolean().optional().describe("Give it its own working tree of the git repository"),
};

export const batchParams = z.object({
  context: z.string().optional().describe("What all of them should know: the goal, decisions, constraints"),
  tasks: z.array(z.object(one)).min(1).describe("One entry for each subagent; they work at the same time"),
});
export const flatParams = z.object(one);
export type BatchCall = z.infer<typeof batchParams>;

/** Brings either shape into the one that is offered; what is neither is left for the validation to name. */
export function reshape(args: unknown, to: "batch" | "flat"): unknown {
  const parsed = z.record(z.string(), z.unknown()).safeParse(args);
  if (!parsed.success) return args;
  const { context, tasks, ...rest } = parsed.data;
  if (to === "batch") return tasks === undefined && "task" in rest ? { context, tasks: [rest] } : args;
  if (!Array.isArray(tasks) || tasks.length !== 1) return args;
  const [only] = z.array(z.record(z.string(), z.unknown())).safeParse(tasks).data ?? [];
  return only ?? args;
}
