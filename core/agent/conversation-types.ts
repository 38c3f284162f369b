// What extensions see of a conversation. Implemented in conversation.ts.

import type { ImageContent, InputContent } from "../../protocol/content.ts";
import type { Frame } from "../../protocol/frame.ts";
import type {
  AgentMessage,
  AssistantMessage,
  BashExecutionMessage,
  CustomMessage,
  DeveloperMessage,
} from "../../protocol/message.ts";
import type { Model, ThinkingLevel } from "../../protocol/model.ts";
import type { Invocation } from "../kernel/context.ts";
import type { FrameDefinition } from "../kernel/definition.ts";
import type { SessionLog } from "../session/log.ts";
import type { ToolSchema } from "./provider.ts";
import type { Slot, SlotDefinition } from "./slot.ts";

export type QueueMode = "all" | "one-at-a-time";
export type InterruptMode = "immediate" | "wait";
/** How `message_update` frames carry the answer: whole snapshots, or deltas with empty content. */
export type MessageUpdateMode = "full" | "delta";

/** Model and thinking level of a conversation; takes effect at the next model call. */
export interface Selection {
  model: Model | undefined;
  thinkingLevel: ThinkingLevel;
}

export interface SubmitOptions {
  images?: readonly ImageContent[] | undefined;
  /** While a run is going: as steering or as follow-up. */
  delivery?: "steer" | "followUp" | undefined;
  attribution?: "user" | "agent" | undefined;
  invocation?: Invocation | undefined;
  /** True to skip the `input` hook, for text that went through it. */
  skipInputHook?: boolean | undefined;
}

export type RunStatus = "completed" | "aborted" | "error";

/** How submitted work ended. `queued`: it joined a run or a queue; `handled`: an extension took it and the model was not asked. */
export interface RunOutcome {
  readonly status: RunStatus | "queued" | "handled";
  readonly messages: readonly AgentMessage[];
  readonly errorMessage?: string | undefined;
  /** Of a queued message: how the run that takes it ends. Never rejects; stays open as long as the message waits. */
  readonly delivered?: Promise<RunOutcome> | undefined;
}

/**
 * Submitted work. Resolves once it is accepted: a run has begun, or it is queued; rejects when it is refused, with nothing
 * changed. `settled` never rejects and tells how the run ended, after its `agent_end`.
 */
export interface Submission extends Promise<void> {
  readonly settled: Promise<RunOutcome>;
}

/** Why a conversation is taken: `compact` or `handoff`. Prompts are queued meanwhile (DESIGN §9 "taken"). */
export type TakenBy = "compact" | "handoff";

/** A conversation held by `compact` or `handoff`. */
export interface Taken {
  /** Aborted when the host gives it up: abort, new_session, switch_session, shutdown. */
  readonly signal: AbortSignal;
  /** Lets queued prompts run. Idempotent. */
  release(): void;
  /** Releases, and what is queued here runs in another conversation instead. */
  transfer(to: ConversationHandle): void;
}

export interface ContextUsage {
  readonly tokens: number;
  readonly contextWindow: number;
  /** 0–100. */
  readonly percent: number;
}

export interface ConversationHandle {
  readonly id: string;
  readonly log: SessionLog;
  readonly cwd: string;
  readonly selection: Readonly<Selection>;
  /** True from the moment work is accepted until its `agent_end`, waits between retries included. */
  readonly isStreaming: boolean;
  /** True during manual and automatic compaction, and during a handoff. */
  readonly isCompacting: boolean;
  readonly isSubagent: boolean;
  /** True while its frames go to the host. */
  readonly isAttached: boolean;
  /** Aborted when the conversation is closed. */
  readonly signal: AbortSignal;
  /** In-context messages, oldest first. Do not change. */
  readonly messages: readonly AgentMessage[];
  readonly queue: {
    readonly steering: readonly AgentMessage[];
    readonly followUp: readonly AgentMessage[];
    /** Custom messages that wait for the next prompt. */
    readonly nextTurn: readonly AgentMessage[];
    /** `queuedMessageCount`: hidden custom messages of the two queues are not counted. */
    readonly count: number;
    steeringMode: QueueMode;
    followUpMode: QueueMode;
    interruptMode: InterruptMode;
    /** Takes everything out, e.g. to carry it over to another conversation. */
    drain(): { steering: AgentMessage[]; followUp: AgentMessage[]; nextTurn: AgentMessage[] };
    /** Puts messages at the end without starting a run. */
    add(kind: "steering" | "followUp" | "nextTurn", ...messages: AgentMessage[]): void;
  };
  messageUpdates: MessageUpdateMode;
  /**
   * Starts a run, or queues with `delivery`. `isStreaming` is true as soon as this returns.
   * Rejects with CommandError: code busy when a run is going and no delivery is given; no model; no credential.
   */
  submit(text: string | InputContent[], options?: SubmitOptions): Submission;
  /** Adds a custom or developer message; with `triggerTurn` it starts a run or joins a queue. */
  submitCustom(
    message: Omit<CustomMessage, "role" | "timestamp"> | DeveloperMessage,
    options?: {
      triggerTurn?: boolean | undefined;
      delivery?: "steer" | "followUp" | "nextTurn" | undefined;
      invocation?: Invocation | undefined;
    },
  ): Submission;
  /** Asks the model again without a new message: after a retry by hand or a compaction. Rejects when there is nothing to answer. */
  continue(options?: { invocation?: Invocation | undefined }): Submission;
  /** Changes model or thinking level and records it in the log; the same value again records nothing. */
  select(change: Partial<Selection>): void;
  slot<T>(definition: SlotDefinition<T>): Slot<T>;
  emit<T>(frame: FrameDefinition<T>, fields: T): void;
  emitRaw(frame: Frame): void;
  /** Tells of every frame after it was sent, in order, synchronously. For the runtime's own consumers (subagents). */
  onFrame(listener: (frame: Frame) => void): () => void;
  /**
   * Ends the run, its tools, a retry wait or compaction. Resolves when idle, at most 2 s later. Queues stay; leftover steering
   * starts a run afterwards unless `resume` is false; follow-ups wait for the next prompt unless `park` is false.
   */
  abort(reason?: string, options?: { resume?: boolean | undefined; park?: boolean | undefined }): Promise<void>;
  /** Ends only a wait between retries; true when there was one. */
  abortRetry(): boolean;
  whenIdle(): Promise<void>;
  /** Takes the conversation for compact or handoff. @throws {CommandError} code busy when it is taken already. */
  take(by: TakenBy): Taken;
  readonly takenBy: TakenBy | undefined;
  /** Marks an automatic compaction inside a run; the returned function ends the mark. */
  markCompacting(): () => void;
  /** Stores the record of a command the host ran; during a turn at its end. Emits nothing. */
  recordBash(message: BashExecutionMessage): void;
  /** Tokens in context: usage of the last answer since a compaction plus an estimate of what came after it. */
  contextUsage(): ContextUsage | undefined;
  /** Blocks in order, as the next model call sends them. */
  systemPrompt(): Promise<string[]>;
  /** The tools the next model call offers; the same array until something changes. */
  toolSchemas(): readonly ToolSchema[];
  /** Active tools by name; undefined means all offered ones. */
  activeTools: string[] | undefined;
  setActiveTools(names: readonly string[] | undefined): void;
  lastAssistant(): AssistantMessage | undefined;
  /** The log moved to another path (branch, compaction): reads messages and slots again. */
  reload(): void;
}
