import {
  defineTool,
  type TodoPhase,
  type TodoStatus,
  Todos,
  type TodoTask,
  ToolError,
  type ToolResult,
  textResult,
  z,
} from "mortise/extension";

// Strict: a task under another name must not turn into all of them.
const params = z.strictObject({
  op: z
    .enum(["init", "start", "done", "drop", "rm", "append", "view"])
    .describe("init: a new plan; start, done, drop, rm: one task, a phase, or all; append: add tasks; view: show the plan"),
  list: z
    .array(z.object({ phase: z.string().min(1), items: z.array(z.string().min(1)) }))
    .optional()
    .describe("init: phases with their tasks"),
  items: z.array(z.string().min(1)).optional().describe("init without phases, append: tasks"),
  phase: z.string().min(1).optional().describe("Name of a phase; append creates it"),
  task: z.string().min(1).optional().describe("Exact text of a task"),
});
type Params = z.infer<typeof params>;

const MARKS: Record<TodoStatus, string> = { pending: "[ ]", in_progress: "[>]", completed: "[x]", abandoned: "[-]" };

export default defineTool<Params>({
  name: "todo",
  description: [
    "Keep the plan of work that has several steps. One task is in progress at a time; when it is done the next pending one starts by itself.",
    "Mark tasks done as soon as they are. A call changes everything or nothing.",
  ].join("\n"),
  promptSnippet: "Keep a plan of several steps",
  params,
  readOnly: true,
  concurrency: "exclusive",
  available: (ctx) => !ctx.isSubagent && ctx.setting<boolean | undefined>("todo.enabled") !== false,
  run(ctx, args) {
    const slot = ctx.conversation.slot(Todos);
    const before = slot.get();
    const after = args.op === "view" ? before : promote(apply(before, args));
    if (after !== before) slot.set(after);
    return present(after, before, args, ctx.conversation.log.file !== undefined);
  },
});

function apply(phases: readonly TodoPhase[], args: Params): TodoPhase[] {
  if (args.op === "init") return initial(args);
  if (args.op === "append") return append(phases, args);
  if (args.op === "start" && args.task === undefined) throw new ToolError("Cannot start: name the task");
  const chosen = choose(phases, args);
  if (args.op === "rm") {
    const kept = phases.map((phase) => ({ ...phase, tasks: phase.tasks.filter((task) => !chosen.has(task)) }));
    return kept.filter((phase, index) => phase.tasks.length > 0 || phases[index]?.tasks.length === 0);
  }
  const status: TodoStatus = args.op === "start" ? "in_progress" : args.op === "done" ? "completed" : "abandoned";
  return phases.map((phase) => ({
    ...phase,
    tasks: phase.tasks.map((task) => {
      if (chosen.has(task)) return { ...task, status };
      // The one that is started takes the place of the one before.
      return args.op === "start" && task.status === "in_progress" ? { ...task, status: "pending" as const } : task;
    }),
  }));
}

function initial(args: Params): TodoPhase[] {
  const list = args.list ?? (args.items === undefined ? undefined : [{ phase: args.phase ?? "Tasks", items: args.items }]);
  if (list === undefined) throw new ToolError("Cannot make a plan: give list (phases with items) or items");
  const tasks = list.flatMap(({ items }) => items);
  refuse([
    ...duplicates(list.map(({ phase }) => phase)).map((name) => `Phase "${name}" is named twice`),
    ...duplicates(tasks).map((name) => `Task "${name}" is named twice`),
    ...(tasks.length === 0 ? ["There is no task"] : []),
  ]);
  return list.map(({ phase, items }) => ({ name: phase, tasks: items.map(pending) }));
}

function append(phases: readonly TodoPhase[], args: Params): TodoPhase[] {
  const items = args.items ?? (args.task === undefined ? [] : [args.task]);
  const known = new Set(phases.flatMap((phase) => phase.tasks.map((task) => task.content)));
  refuse([
    ...(items.length === 0 ? ["There is no task to add: give items"] : []),
    ...duplicates(items).map((name) => `Task "${name}" is named twice`),
    ...items.filter((item) => known.has(item)).map((item) => `Task "${item}" is in the plan already`),
  ]);
  const name = args.phase ?? phases.at(-1)?.name ?? "Tasks";
  const added = items.map(pending);
  if (!phases.some((phase) => phase.name === name)) return [...phases, { name, tasks: added }];
  return phases.map((phase) => (phase.name === name ? { ...phase, tasks: [...phase.tasks, ...added] } : phase));
}

/** The tasks an operation names: one, those of a phase, or all. */
function choose(phases: readonly TodoPhase[], args: Params): Set<TodoTask> {
  const inPhase = args.phase === undefined ? phases : phases.filter((phase) => phase.name === args.phase);
  const names = (values: readonly string[]) => (values.length > 0 ? values.map((value) => `"${value}"`).join(", ") : "none");
  if (args.phase !== undefined && inPhase.length === 0) {
    throw new ToolError(`No phase is named "${args.phase}"; there are: ${names(phases.map((phase) => phase.name))}`);
  }
  const tasks = inPhase.flatMap((phase) => phase.tasks);
  if (args.task === undefined) return new Set(tasks);
  const found = tasks.filter((task) => task.content === args.task);
  if (found.length === 0) {
    throw new ToolError(`No task reads "${args.task}"; there are: ${names(tasks.map((task) => task.content))}`);
  }
  return new Set(found.slice(0, 1));
}

/** At most one task in progress, the first; with none the first pending one starts. */
function promote(phases: TodoPhase[]): TodoPhase[] {
  let active = false;
  const single = phases.map((phase) => ({
    ...phase,
    tasks: phase.tasks.map((task) => {
      if (task.status !== "in_progress") return task;
      if (active) return { ...task, status: "pending" as const };
      active = true;
      return task;
    }),
  }));
  return single.map((phase) => ({
    ...phase,
    tasks: phase.tasks.map((task) => {
      if (active || task.status !== "pending") return task;
      active = true;
      return { ...task, status: "in_progress" as const };
    }),
  }));
}

function present(phases: readonly TodoPhase[], before: readonly TodoPhase[], args: Params, stored: boolean): ToolResult {
  const done = (list: readonly TodoPhase[]) =>
    list.flatMap((phase) => phase.tasks.filter((task) => task.status === "completed").map((task) => task.content));
  const earlier = new Set(done(before));
  const completedTasks = args.op === "init" ? [] : done(phases).filter((content) => !earlier.has(content));
  const lines = phases.flatMap((phase) => [phase.name, ...phase.tasks.map((task) => `  ${MARKS[task.status]} ${task.content}`)]);
  const details = { phases, storage: stored ? "session" : "memory", op: args.op };
  return textResult(lines.length > 0 ? lines.join("\n") : "The plan is empty", {
    ...details,
    ...(completedTasks.length > 0 ? { completedTasks } : {}),
  });
}

const pending = (content: string): TodoTask => ({ content, status: "pending" });

function duplicates(values: readonly string[]): string[] {
  return [...new Set(values.filter((value, index) => values.indexOf(value) !== index))];
}

function refuse(errors: readonly string[]): void {
  if (errors.length > 0) throw new ToolError(`The plan is unchanged: ${errors.join("; ")}`);
}
