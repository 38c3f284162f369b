// What extensions see of a conversation. Implemented in conversation.ts.

import type { ImageContent, InputContent } from "../../protocol/content.ts";
import type { Frame } from "../../protocol/frame.ts";
import type { AgentMessage, AssistantMessage, CustomMessage } from "../../protocol/message.ts";
import type { Model, ThinkingLevel } from "../../protocol/model.ts";
import type { Invocation } from "../kernel/context.ts";
import type { FrameDefinition } from "../kernel/definition.ts";
import type { SessionLog } from "../session/log.ts";
import type { Slot, SlotDefinition } from "./slot.ts";

export type QueueMode = "all" | "one-at-a-time";
export type InterruptMode = "immediate" | "wait";

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
}

/** Why a conversation is taken: `compact` or `handoff`. Prompts are queued meanwhile (DESIGN §9 "taken"). */
export type TakenBy = "compact" | "handoff";

export interface ConversationHandle {
  readonly id: string;
  readonly log: SessionLog;
  readonly cwd: string;
  readonly selection: Readonly<Selection>;
  readonly isStreaming: boolean;
  readonly isCompacting: boolean;
  readonly isSubagent: boolean;
  /** Aborted when the conversation is closed. */
  readonly signal: AbortSignal;
  /** In-context messages, oldest first. Do not change. */
  readonly messages: readonly AgentMessage[];
  readonly queue: {
    steering: readonly AgentMessage[];
    followUp: readonly AgentMessage[];
    steeringMode: QueueMode;
    followUpMode: QueueMode;
    interruptMode: InterruptMode;
  };
  /** Starts a run, or queues with `delivery`. @throws {CommandError} code busy when a run is going and no delivery is given. */
  submit(text: string | InputContent[], options?: SubmitOptions): Promise<void>;
  /** Adds a custom message; with `triggerTurn` it starts a run or joins the queue. */
  submitCustom(
    message: Omit<CustomMessage, "role" | "timestamp">,
    options?: { triggerTurn?: boolean; delivery?: "steer" | "followUp" | "nextTurn" },
  ): Promise<void>;
  select(change: Partial<Selection>): void;
  slot<T>(definition: SlotDefinition<T>): Slot<T>;
  emit<T>(frame: FrameDefinition<T>, fields: T): void;
  emitRaw(frame: Frame): void;
  /** Ends the run, its tools, a retry wait or compaction. Resolves when idle, at most 2 s later. */
  abort(reason?: string): Promise<void>;
  whenIdle(): Promise<void>;
  /** Active tools by name; undefined means all offered ones. */
  activeTools: string[] | undefined;
  lastAssistant(): AssistantMessage | undefined;
}
