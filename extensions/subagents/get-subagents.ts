import { defineCommand, SubagentSnapshot, Subagents, z } from "mortise/extension";

export default defineCommand({
  name: "get_subagents",
  group: "State",
  summary: "Lists the subagents of the session that wait or run, whatever the subscription is.",
  concurrency: "serial",
  source: "both",
  params: z.object({}),
  result: z.object({ subagents: z.array(SubagentSnapshot) }),
  example: {
    params: {},
    result: {
      subagents: [
        { id: "Explore", index: 0, agent: "explore", agentSource: "bundled", status: "running", lastUpdate: 1764495420000 },
      ],
    },
  },
  run: (ctx) => ({ subagents: ctx.use(Subagents).snapshots() }),
});
