import { CommandError, defineCommand, Subagents, z } from "mortise/extension";

const level = z.enum(["off", "progress", "events"]);

export default defineCommand({
  name: "set_subagent_subscription",
  group: "State",
  summary: "Chooses which frames about subagents are sent: none (at first), their progress, or all their events as well.",
  concurrency: "serial",
  source: "both",
  params: z.object({
    level: z
      .unknown()
      .meta({ enum: ["off", "progress", "events"] })
      .optional(),
  }),
  result: z.object({ level }),
  example: {
    params: { level: "progress" },
    result: { level: "progress" },
    failure: "Invalid subagent subscription level: all",
  },
  run(ctx, params) {
    const parsed = level.safeParse(params.level);
    if (!parsed.success) {
      const found = typeof params.level === "string" ? params.level : JSON.stringify(params.level);
      throw new CommandError(`Invalid subagent subscription level: ${found}`, "invalid_params");
    }
    ctx.use(Subagents).level = parsed.data;
    return { level: parsed.data };
  },
});
