import { CommandError, type Context, defineSlashCommand, type SlashContext, z } from "mortise/extension";
import { runCommand } from "./_run-command.ts";

const Task = z.looseObject({ content: z.string(), status: z.string() });
const Phases = z.array(z.looseObject({ name: z.string(), tasks: z.array(Task) }));
type Phases = z.infer<typeof Phases>;

const MARKS: Record<string, string> = { pending: "[ ]", in_progress: "[>]", completed: "[x]", abandoned: "[-]", blocked: "[!]" };
const STATUS = { start: "in_progress", done: "completed", drop: "abandoned", reopen: "pending" } as const;
const USAGE = "Usage: /todo [append <text> | start|done|drop|reopen|rm <number> | clear]";

/** The plan is the todo extension's; it is read from its slot and changed with its command. */
export default defineSlashCommand({
  name: "todo",
  aliases: ["todos"],
  description: "Show the plan, or change it",
  argumentHint: "[append|start|done|drop|reopen|rm|clear …]",
  subcommands: [
    { name: "append", usage: "append <text>", description: "Add a task at the end" },
    { name: "start", usage: "start <number>" },
    { name: "done", usage: "done <number>" },
    { name: "drop", usage: "drop <number>" },
    { name: "reopen", usage: "reopen <number>" },
    { name: "rm", usage: "rm <number>", description: "Take a task out" },
    { name: "clear", usage: "clear", description: "Take the whole plan out" },
  ],
  source: "builtin",
  async run(ctx, args) {
    const verb = /^\S*/.exec(args)?.[0] ?? "";
    const rest = args.slice(verb.length).trim();
    const changed = verb === "" ? undefined : change(read(ctx), verb, rest);
    if (changed === "usage") return ctx.output(USAGE);
    if (typeof changed === "string") return ctx.output(changed);
    if (changed !== undefined) await runCommand(ctx, "set_todos", { phases: changed });
    print(ctx);
  },
});

function read(ctx: Context): Phases {
  const slot = ctx.registry.get("slot", "todos");
  if (slot === undefined) throw new CommandError("No extension keeps todos", "not_found");
  const parsed = Phases.safeParse(ctx.conversation.slot(slot.definition).get());
  if (!parsed.success) throw new CommandError("The todos cannot be read: an extension keeps them in another shape");
  return parsed.data;
}

/** The plan after the change, or what is wrong with the request. */
function change(phases: Phases, verb: string, rest: string): Phases | string {
  if (verb === "clear") return [];
  if (verb === "append") return rest === "" ? "usage" : append(phases, rest);
  const status = Object.entries(STATUS).find(([name]) => name === verb)?.[1];
  if (status === undefined && verb !== "rm") return "usage";
  const total = phases.reduce((sum, phase) => sum + phase.tasks.length, 0);
  const wanted = /^\d+$/.test(rest) ? Number(rest) : 0;
  if (wanted < 1 || wanted > total) return total === 0 ? "There are no todos" : `Expected the number of a task, 1 to ${total}`;
  let number = 0;
  return phases.map((phase) => ({
    ...phase,
    tasks: phase.tasks.flatMap((task) => {
      number++;
      if (number !== wanted) {
        // One task at a time is being worked on.
        return status === "in_progress" && task.status === "in_progress" ? [{ ...task, status: "pending" }] : [task];
      }
      return status === undefined ? [] : [{ ...task, status }];
    }),
  }));
}

function append(phases: Phases, content: string): Phases {
  const task = { content, status: "pending" };
  const last = phases.at(-1);
  if (last === undefined) return [{ name: "Tasks", tasks: [task] }];
  return [...phases.slice(0, -1), { ...last, tasks: [...last.tasks, task] }];
}

function print(ctx: SlashContext): void {
  const phases = read(ctx);
  if (phases.every((phase) => phase.tasks.length === 0)) return ctx.output("There are no todos");
  let number = 0;
  const lines = phases.flatMap(({ name, tasks }) => [
    name,
    ...tasks.map(({ content, status }) => {
      number++;
      return `${String(number).padStart(3)}. ${MARKS[status] ?? `[${status}]`} ${content}`;
    }),
  ]);
  ctx.output(lines.join("\n"));
}
