import { defineSlashCommand } from "mortise/extension";
import { columns } from "./_format.ts";
import { runCommand } from "./_run-command.ts";

const MODES = {
  steering: { command: "set_steering_mode", values: ["all", "one-at-a-time"] },
  "follow-up": { command: "set_follow_up_mode", values: ["all", "one-at-a-time"] },
  interrupt: { command: "set_interrupt_mode", values: ["immediate", "wait"] },
} as const;

export default defineSlashCommand({
  name: "queue",
  description: "Show what is queued, or set how it is delivered",
  argumentHint: "[steering|follow-up|interrupt <mode>]",
  subcommands: Object.entries(MODES).map(([name, { values }]) => ({ name, usage: `${name} ${values.join("|")}` })),
  source: "builtin",
  async run(ctx, args) {
    const { queue } = ctx.conversation;
    const [which = "", mode = ""] = args.split(/\s+/);
    if (which !== "") {
      const known = Object.entries(MODES).find(([name]) => name === which)?.[1];
      if (known === undefined || !known.values.some((value) => value === mode)) {
        ctx.output(`Usage: ${usages().join(" or ")}`);
        return;
      }
      await runCommand(ctx, known.command, { mode });
    }
    ctx.output(
      columns([
        ["Steering", `${queue.steering.length} queued, delivered ${queue.steeringMode}`],
        ["Follow-up", `${queue.followUp.length} queued, delivered ${queue.followUpMode}`],
        ["Interrupt", queue.interruptMode],
      ]),
    );
  },
});

function usages(): string[] {
  return Object.entries(MODES).map(([name, { values }]) => `/queue ${name} ${values.join("|")}`);
}
