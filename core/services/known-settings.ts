// Settings that more than one extension reads. Defined once here, registered by extensions/settings; a setting with one
// reader is defined next to it. Defaults: reference of 000_… "RPC mode host-defaults" and the behaviour of its family.
import { z } from "zod";
import { defineSetting, type SettingDefinition } from "../agent/settings.ts";

const count = z.number().int().min(0);

// Subagents. `task.*` are the names of older files.

export const AgentIsolationMode = defineSetting({
  name: "agent.isolation.mode",
  schema: z.enum(["none", "auto", "apfs", "btrfs", "zfs", "reflink", "overlayfs", "projfs", "block-clone", "rcopy"]),
  default: "none",
  hostDefault: "none",
  aliases: ["task.isolation.mode"],
  summary: "Workspace isolation of subagents; anything but none needs a git repository",
});

export const AgentIsolationMerge = defineSetting({
  name: "agent.isolation.merge",
  schema: z.enum(["patch", "branch"]),
  default: "patch",
  hostDefault: "patch",
  aliases: ["task.isolation.merge"],
  summary: "How the changes of an isolated subagent come back: patch applies a diff, branch merges a commit per task",
});

export const AgentIsolationCommits = defineSetting({
  name: "agent.isolation.commits",
  schema: z.enum(["generic", "ai"]),
  default: "generic",
  hostDefault: "generic",
  aliases: ["task.isolation.commits"],
  summary: "Commit messages of isolated subagents: a fixed text, or one that the model writes",
});

export const AgentDelegation = defineSetting({
  name: "agent.delegation",
  schema: z.enum(["default", "preferred", "always"]),
  default: "default",
  hostDefault: "default",
  aliases: ["task.eager"],
  summary: "How strongly the model is told to hand work to subagents",
});

export const AgentBatch = defineSetting({
  name: "agent.batch",
  schema: z.boolean(),
  default: true,
  hostDefault: true,
  aliases: ["task.batch"],
  summary: "Whether one call of the task tool may start several subagents",
});

export const AgentMaxConcurrency = defineSetting({
  name: "agent.maxConcurrency",
  schema: count,
  default: 32,
  hostDefault: 32,
  aliases: ["task.maxConcurrency"],
  summary: "Subagents that run at once; 0 means no limit",
});

export const AgentMaxNestedSpawnDepth = defineSetting({
  name: "agent.maxNestedSpawnDepth",
  schema: z.number().int().min(-1),
  default: 2,
  hostDefault: 2,
  aliases: ["task.maxRecursionDepth"],
  summary: "How deep subagents may start subagents; 0 means not at all, -1 means no limit",
});

/** What is configured about one agent; unknown keys are kept for extensions. */
export const AgentOverride = z.looseObject({
  enabled: z.boolean().optional(),
  model: z.string().min(1).optional(),
});
export type AgentOverride = z.infer<typeof AgentOverride>;

export const AgentAgents = defineSetting<Record<string, AgentOverride>>({
  name: "agent.agents",
  schema: z.record(z.string(), AgentOverride),
  default: {},
  hostDefault: {},
  summary: "Per agent: whether it is enabled, and its model",
});

export const MemoryBackend = defineSetting({
  name: "memory.backend",
  schema: z.enum(["off", "local", "hindsight", "mnemopi"]),
  default: "off",
  hostDefault: "off",
  summary: "Where memories are kept between sessions",
});

// Background work

export const AsyncEnabled = defineSetting({
  name: "async.enabled",
  schema: z.boolean(),
  default: true,
  hostDefault: true,
  summary: "Whether tools may go on in the background",
});

export const AsyncMaxJobs = defineSetting({
  name: "async.maxJobs",
  schema: z.number().int().min(1).max(100),
  default: 100,
  hostDefault: 100,
  summary: "Background jobs that run at once",
});

export const BashAutoBackgroundEnabled = defineSetting({
  name: "bash.autoBackground.enabled",
  schema: z.boolean(),
  default: false,
  hostDefault: false,
  summary: "Whether a shell command that runs long is moved to the background",
});

export const BashAutoBackgroundThresholdMs = defineSetting({
  name: "bash.autoBackground.thresholdMs",
  schema: count,
  default: 60_000,
  hostDefault: 60_000,
  summary: "Milliseconds after which a shell command is moved to the background",
});

export const SessionBackgroundLimit = defineSetting({
  name: "session.backgroundLimit",
  schema: count,
  default: 4,
  summary: "Conversations that may go on detached",
});

// Todos: never host-defaulted (000_…: "always caller-controlled in protocol modes")

export const TodoEnabled = defineSetting({
  name: "todo.enabled",
  schema: z.boolean(),
  default: true,
  summary: "Whether the todo tool is offered",
});

export const TodoReminders = defineSetting({
  name: "todo.reminders",
  schema: z.boolean(),
  default: true,
  aliases: ["todo.reminders.enabled"],
  summary: "Whether the model is reminded of open todos when it stops",
});

export const TodoRemindersMax = defineSetting({
  name: "todo.reminders.max",
  schema: count,
  default: 3,
  summary: "Reminders per user prompt",
});

export const TodoEager = defineSetting({
  name: "todo.eager",
  schema: z.enum(["default", "preferred", "always"]),
  default: "default",
  summary: "How strongly the model is told to plan with todos first",
});

// Queues

export const SteeringMode = defineSetting({
  name: "steeringMode",
  schema: z.enum(["all", "one-at-a-time"]),
  default: "one-at-a-time",
  aliases: ["queueMode"],
  summary: "How many steering messages are delivered at one point",
});

export const FollowUpMode = defineSetting({
  name: "followUpMode",
  schema: z.enum(["all", "one-at-a-time"]),
  default: "one-at-a-time",
  summary: "How many follow-up messages are delivered at one point",
});

export const InterruptMode = defineSetting({
  name: "interruptMode",
  schema: z.enum(["immediate", "wait"]),
  default: "immediate",
  summary: "Whether steering skips tool calls that have not started",
});

// Tools

export const ToolsApprovalMode = defineSetting<"plan" | "ask" | "auto-edit" | "yolo">({
  name: "tools.approvalMode",
  schema: z.enum(["plan", "ask", "auto-edit", "yolo"]),
  default: "yolo",
  trustedOnly: true,
  summary: "Which tool calls need a yes of the person in front of the host",
});

export const ToolsApproval = defineSetting<Record<string, "allow" | "deny" | "prompt">>({
  name: "tools.approval",
  schema: z.record(
    z.string(),
    z.enum(["allow", "deny", "prompt", "ask"]).transform((verdict) => (verdict === "ask" ? "prompt" : verdict)),
  ),
  default: {},
  trustedOnly: true,
  summary: "Per tool, or tool with a pattern such as bash(git status*) or write(src/**): allow, deny or prompt (also ask)",
});

export const ToolsSandbox = defineSetting<"off" | "read-only" | "workspace-write">({
  name: "tools.sandbox",
  schema: z.enum(["off", "read-only", "workspace-write"]),
  default: "off",
  trustedOnly: true,
  summary: "What the model's shell commands may write: everything, nothing, or the working directory; needs bubblewrap",
});

export const ToolsSandboxNetwork = defineSetting({
  name: "tools.sandboxNetwork",
  schema: z.boolean(),
  default: false,
  trustedOnly: true,
  summary: "Whether sandboxed commands reach the network",
});

export const AskTimeout = defineSetting({
  name: "ask.timeout",
  // Older files gave milliseconds; nobody waits 17 minutes for an answer in seconds.
  schema: z
    .number()
    .min(0)
    .transform((value) => (value > 1000 ? Math.round(value / 1000) : value)),
  default: 0,
  summary: "Seconds a question of the ask tool stays open; 0 means until it is answered",
});

export const ReadDefaultLimit = defineSetting({
  name: "read.defaultLimit",
  schema: z.number().int().min(1),
  default: 2000,
  summary: "Lines that read gives when no limit is named",
});

export const ImagesAutoResize = defineSetting({
  name: "images.autoResize",
  schema: z.boolean(),
  default: true,
  summary: "Whether large images are made smaller before they are sent to the model",
});

export const SkillsEnableSkillCommands = defineSetting({
  name: "skills.enableSkillCommands",
  schema: z.boolean(),
  default: true,
  summary: "Whether every skill is a slash command /skill:name",
});

// Retry and compaction

export const RetryEnabled = defineSetting({
  name: "retry.enabled",
  schema: z.boolean(),
  default: true,
  summary: "Whether failed model calls are tried again",
});

export const CompactionEnabled = defineSetting({
  name: "compaction.enabled",
  schema: z.boolean(),
  default: true,
  summary: "Whether the context is compacted when it fills up",
});

/** All of the above, in order of appearance. */
export const knownSettings: readonly SettingDefinition[] = [
  AgentIsolationMode,
  AgentIsolationMerge,
  AgentIsolationCommits,
  AgentDelegation,
  AgentBatch,
  AgentMaxConcurrency,
  AgentMaxNestedSpawnDepth,
  AgentAgents,
  MemoryBackend,
  AsyncEnabled,
  AsyncMaxJobs,
  BashAutoBackgroundEnabled,
  BashAutoBackgroundThresholdMs,
  SessionBackgroundLimit,
  TodoEnabled,
  TodoReminders,
  TodoRemindersMax,
  TodoEager,
  SteeringMode,
  FollowUpMode,
  InterruptMode,
  ToolsApprovalMode,
  ToolsApproval,
  ToolsSandbox,
  ToolsSandboxNetwork,
  AskTimeout,
  ReadDefaultLimit,
  ImagesAutoResize,
  SkillsEnableSkillCommands,
  RetryEnabled,
  CompactionEnabled,
];
