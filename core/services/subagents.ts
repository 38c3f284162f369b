// Subagents: conversations that work for a tool call of another one. Implemented by extensions/subagents; the `task` tool starts
// them. Shapes: protocol-facts §1.4, §2.6 and agent-semantics §3.5.
import { z } from "zod";
import { Usage } from "../../protocol/message.ts";
import type { ThinkingLevel } from "../../protocol/model.ts";
import type { ConversationHandle } from "../agent/conversation-types.ts";
import { type Definition, define } from "../kernel/definition.ts";
import { createToken } from "../kernel/services.ts";

export const SubagentStatus = z.enum(["pending", "running", "completed", "failed", "aborted"]);
export type SubagentStatus = z.infer<typeof SubagentStatus>;

export const AgentSource = z.enum(["bundled", "user", "project"]);
export type AgentSource = z.infer<typeof AgentSource>;

/** What a subagent is doing; times in milliseconds, `…Ms` of a moment since 1970. */
export const AgentProgress = z
  .object({
    index: z.number().int().describe("Place in its call, from 0"),
    id: z.string(),
    agent: z.string(),
    agentSource: AgentSource,
    status: SubagentStatus,
    task: z.string(),
    assignment: z.string().optional(),
    description: z.string().optional(),
    currentTool: z.string().optional(),
    currentToolArgs: z.string().optional(),
    currentToolStartMs: z.number().optional(),
    recentTools: z.array(z.object({ tool: z.string(), args: z.string(), endMs: z.number() })),
    recentOutput: z.array(z.string()).describe("Its last lines"),
    toolCount: z.number().int(),
    requests: z.number().int(),
    tokens: z.number().describe("Input, output and cache writes so far"),
    cost: z.number().describe("US dollars"),
    durationMs: z.number(),
    contextTokens: z.number().optional(),
    contextWindow: z.number().optional(),
    resolvedModel: z.string().optional(),
    retryState: z
      .object({
        attempt: z.number(),
        maxAttempts: z.number(),
        delayMs: z.number(),
        errorMessage: z.string(),
        startedAtMs: z.number(),
      })
      .optional(),
    retryFailure: z.object({ attempt: z.number(), errorMessage: z.string() }).optional(),
  })
  .meta({ id: "AgentProgress" });
export type AgentProgress = z.infer<typeof AgentProgress>;

/** One line of `get_subagents`. */
export const SubagentSnapshot = z
  .object({
    id: z.string(),
    index: z.number().int(),
    agent: z.string(),
    agentSource: AgentSource,
    status: SubagentStatus,
    lastUpdate: z.number().describe("Unix milliseconds"),
    description: z.string().optional(),
    task: z.string().optional(),
    assignment: z.string().optional(),
    sessionFile: z.string().optional(),
    parentToolCallId: z.string().optional(),
    progress: AgentProgress.optional(),
  })
  .meta({ id: "SubagentSnapshot" });
export type SubagentSnapshot = z.infer<typeof SubagentSnapshot>;

/** One subagent in `details.results` of the `task` tool. */
export const SubagentResult = z
  .object({
    index: z.number().int(),
    id: z.string(),
    agent: z.string(),
    agentSource: AgentSource,
    task: z.string(),
    assignment: z.string().optional(),
    description: z.string().optional(),
    exitCode: z.number().int().describe("0 when it completed, else 1"),
    output: z.string(),
    stderr: z.string(),
    truncated: z.boolean(),
    durationMs: z.number(),
    tokens: z.number(),
    requests: z.number().int(),
    usage: Usage.optional(),
    error: z.string().optional(),
    aborted: z.boolean().optional(),
    abortReason: z.string().optional(),
    outputPath: z.string().optional().describe("The whole output, when it was cut"),
    patchPath: z.string().optional().describe("What it changed in its own working tree, when that was not applied"),
    branchName: z.string().optional().describe("The branch that holds its changes, when they were not merged"),
    extractedToolData: z.record(z.string(), z.unknown()).optional(),
  })
  .meta({ id: "SubagentResult" });
export type SubagentResult = z.infer<typeof SubagentResult>;

/** A kind of subagent: a contribution, or a Markdown file with a head. */
export interface AgentTemplate {
  readonly name: string;
  /** Tells the model when to use it; one line. */
  readonly description: string;
  /** Tools by name; undefined for all that its parent has. */
  readonly tools?: readonly string[] | undefined;
  /** Agents it may start itself: all, or by name; undefined for none. */
  readonly spawns?: "*" | readonly string[] | undefined;
  /** Model selectors; the first that can be used wins. Its parent's model when left out. */
  readonly models?: readonly string[] | undefined;
  readonly thinkingLevel?: ThinkingLevel | undefined;
  /** JSON Schema of its answer. */
  readonly output?: Readonly<Record<string, unknown>> | undefined;
  /** False lets it go on as a background job where jobs are allowed. */
  readonly blocking?: boolean | undefined;
  readonly systemPrompt: string;
}

/** A template as it stands for a conversation now. */
export interface AgentDefinition extends AgentTemplate {
  readonly source: AgentSource;
  readonly file?: string | undefined;
}

export interface AgentContribution extends Definition<"agent">, AgentTemplate {
  readonly name: string;
}

/** Contributes a kind of subagent. A Markdown file of the same name in the user's or the project's agents/ comes first. */
export function defineAgent(agent: AgentTemplate): AgentContribution {
  return define({ kind: "agent", ...agent });
}

declare module "../kernel/definition.ts" {
  interface Kinds {
    agent: AgentContribution;
  }
}

export interface SpawnTask {
  readonly name?: string | undefined;
  /** Name of the definition; `task` by default. */
  readonly agent?: string | undefined;
  readonly task: string;
  readonly description?: string | undefined;
  /** Its own working tree of the repository; the setting decides when left out. */
  readonly isolated?: boolean | undefined;
}

export interface SpawnRequest {
  readonly parent: ConversationHandle;
  readonly toolCallId: string;
  /** What all of them are told besides their task. */
  readonly context?: string | undefined;
  readonly tasks: readonly SpawnTask[];
  /** Ends all of them; the results so far are given at once. */
  readonly signal: AbortSignal;
  /** True for work behind the parent's back (a job). */
  readonly detached?: boolean | undefined;
  /** At most every 150 ms. */
  onProgress?(progress: readonly AgentProgress[]): void;
}

export type SubscriptionLevel = "off" | "progress" | "events";

export interface Subagents {
  /** Which frames the host gets; `off` at first. Survives changes of session. */
  level: SubscriptionLevel;
  /** False at `agent.maxNestedSpawnDepth`, and for agents whose definition does not let them. */
  canSpawn(parent: ConversationHandle): boolean;
  /** The definitions a conversation may use now, read from disk again. */
  definitions(parent: ConversationHandle): Promise<readonly AgentDefinition[]>;
  /**
   * Runs subagents to their end, within `agent.maxConcurrency`. One result for each task, in their order; never rejects for a
   * failing subagent. @throws {ToolError} before anything has started: an unknown agent, nesting that is not allowed.
   */
  run(request: SpawnRequest): Promise<SubagentResult[]>;
  /** Live ones of the attached session, by index and id. */
  snapshots(): SubagentSnapshot[];
  /** The session file of a live or remembered subagent. @throws {CommandError} the texts of protocol-facts §1.4. */
  sessionFile(selector: { id?: string | undefined; file?: string | undefined }): string;
}

export const Subagents = createToken<Subagents>("subagents");
