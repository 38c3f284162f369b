// The three frame types about subagents (protocol-facts §2.6). They belong to the process: a host that subscribed gets them.
import { AgentProgress, AgentSource, defineFrame, z } from "mortise/extension";

const about = {
  agent: z.string(),
  agentSource: AgentSource,
  index: z.number().int(),
  sessionFile: z.string().optional(),
  parentToolCallId: z.string().optional(),
  detached: z.boolean().optional().describe("It works behind its parent's back, as a job"),
};

export const subagentLifecycle = defineFrame({
  name: "subagent_lifecycle",
  summary: "A subagent has started or ended; sent at the levels progress and events.",
  scope: "process",
  source: "both",
  fields: z.object({
    id: z.string(),
    ...about,
    description: z.string().optional(),
    status: z.enum(["started", "completed", "failed", "aborted"]),
  }),
  example: { type: "subagent_lifecycle", id: "Explore", agent: "explore", agentSource: "bundled", index: 0, status: "started" },
});

export const subagentProgress = defineFrame({
  name: "subagent_progress",
  summary: "What a subagent is doing, at most every 150 ms; sent at the levels progress and events.",
  scope: "process",
  source: "both",
  fields: z.object({ ...about, task: z.string(), assignment: z.string().optional(), progress: AgentProgress }),
  example: {
    type: "subagent_progress",
    index: 0,
    agent: "explore",
    agentSource: "bundled",
    task: "Find the parser",
    progress: {
      index: 0,
      id: "Explore",
      agent: "explore",
      agentSource: "bundled",
      status: "running",
      task: "Find the parser",
      recentTools: [],
      recentOutput: [],
      toolCount: 0,
      requests: 1,
      tokens: 1200,
      cost: 0,
      durationMs: 420,
    },
  },
});

export const subagentEvent = defineFrame({
  name: "subagent_event",
  summary: "A session event of a subagent; sent at the level events.",
  scope: "process",
  source: "both",
  fields: z.object({ id: z.string(), event: z.looseObject({ type: z.string() }) }),
  example: { type: "subagent_event", id: "Explore", event: { type: "agent_start" } },
});
