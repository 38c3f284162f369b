// The places where extensions steer the turn loop and the life of conversations. Each point says how answers combine; hooks
// steer, frames inform: nothing in core listens to a frame to decide.

import type { ImageContent } from "../../protocol/content.ts";
import type { Frame } from "../../protocol/frame.ts";
import type { AgentMessage, AssistantMessage, ToolResult, ToolResultMessage } from "../../protocol/message.ts";
import type { ProviderError } from "../kernel/errors.ts";
import { defineHookPoint, type Veto } from "../kernel/hooks.ts";
import type { AnswerWatch } from "./answer-watch.ts";
import type { ConversationHandle, RunStatus } from "./conversation-types.ts";
import type { ProviderRequest } from "./provider.ts";

/** What every point of a conversation is told. */
export interface InConversation {
  readonly conversation: ConversationHandle;
}

export interface InputValue extends InConversation {
  readonly text: string;
  readonly images: readonly ImageContent[];
  /** How it came: as a prompt, or for a queue. */
  readonly delivery: "prompt" | "steer" | "followUp";
  readonly attribution: "user" | "agent";
  /** Set by a handler that dealt with the input itself: nothing goes to the model. */
  readonly handled?: boolean | undefined;
}
export const input = defineHookPoint<InputValue, InputValue>({
  name: "input",
  combine: "chain",
  summary: "Text and images on their way into the conversation: change them, or set `handled` and nothing goes to the model",
});

export interface RunStarting extends InConversation {
  /** What starts the run; empty for a run that continues. */
  readonly prompts: readonly AgentMessage[];
  readonly signal: AbortSignal;
}
export const runStarting = defineHookPoint<RunStarting>({
  name: "runStarting",
  combine: "series",
  timeoutMs: 24 * 3600_000,
  summary: "Work was accepted and nothing of it is stored yet: the place for maintenance before the first model call",
});

export interface RunPlan extends InConversation {
  /** The prompt that starts the run; undefined for a run that continues. */
  readonly prompt: AgentMessage | undefined;
  readonly systemPrompt: readonly string[];
  /** Stored after the prompt, before the first model call. */
  readonly extraMessages: readonly AgentMessage[];
}
export const beforeAgentStart = defineHookPoint<RunPlan, RunPlan>({
  name: "beforeAgentStart",
  combine: "chain",
  summary: "Before a run: change the system prompt of this run only, or add messages after the prompt",
});

export interface ContextValue extends InConversation {
  readonly messages: readonly AgentMessage[];
}
export const contextBuilding = defineHookPoint<ContextValue, ContextValue>({
  name: "contextBuilding",
  combine: "chain",
  summary: "The messages of one model call; changes hold for this call and are not stored",
});

export interface AnswerStarting extends InConversation {
  readonly watches: readonly AnswerWatch[];
}
export const answerStarting = defineHookPoint<AnswerStarting, AnswerStarting>({
  name: "answerStarting",
  combine: "chain",
  summary: "The model is about to answer: add a watch that sees every delta and may cut the answer off",
});

export interface RequestValue extends InConversation {
  readonly request: ProviderRequest;
}
export const providerRequest = defineHookPoint<RequestValue, RequestValue>({
  name: "providerRequest",
  combine: "chain",
  summary: "The request as the provider gets it",
});

/** A tool call on its way. `args` are validated; at the seal they are frozen. */
export interface ToolCallValue extends InConversation {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly args: Readonly<Record<string, unknown>>;
  /** Aborted when the call is given up. */
  readonly signal: AbortSignal;
}
export const toolObserve = defineHookPoint<ToolCallValue>({
  name: "toolObserve",
  combine: "parallel",
  summary: "A tool call is about to be checked; answers are ignored",
});
export const toolRewrite = defineHookPoint<ToolCallValue, ToolCallValue>({
  name: "toolRewrite",
  combine: "chain",
  summary: "Change the arguments of a tool call; they are validated again",
});
export const toolDecide = defineHookPoint<ToolCallValue, Veto>({
  name: "toolDecide",
  combine: "veto",
  timeoutMs: 300_000,
  summary: "Gate: block a tool call. A gate that throws or hangs blocks",
});
export const toolSeal = defineHookPoint<ToolCallValue, Veto>({
  name: "toolSeal",
  combine: "veto",
  timeoutMs: 300_000,
  summary: "Last gate, over frozen arguments that nothing changes afterwards",
});

export interface ToolFinishedValue extends InConversation {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly result: ToolResult;
  readonly isError: boolean;
}
export const toolFinished = defineHookPoint<ToolFinishedValue, ToolFinishedValue>({
  name: "toolFinished",
  combine: "chain",
  summary: "The result of a tool that ran or failed, also after an abort: change its content, details or isError",
});

export interface ToolProgressValue extends InConversation {
  readonly toolCallId: string;
  readonly toolName: string;
  /** What the host is about to be shown: a snapshot, at most ten a second. */
  readonly partial: ToolResult;
}
export const toolProgress = defineHookPoint<ToolProgressValue, ToolProgressValue>({
  name: "toolProgress",
  combine: "chain",
  timeoutMs: 1000,
  summary: "What a running tool reports, before the host sees it: change its content or details",
});

export interface TurnFailure extends InConversation {
  readonly message: AssistantMessage;
  readonly error: ProviderError;
  /** Consecutive failures of this run, this one included. */
  readonly attempt: number;
  /** False when the failed answer holds a complete tool call: it may have had effects, a retry answer is ignored. */
  readonly canRetry: boolean;
  /** Aborted with the run; a handler that waits itself must listen. */
  readonly signal: AbortSignal;
}
/**
 * The model is asked again, after the failed answer left the live context (it stays in the file). `delayMs` is waited by the
 * loop; a handler that shows progress may wait itself and answer with 0.
 */
export interface RetryAnswer {
  readonly retry: { readonly delayMs: number };
}
export const turnFailed = defineHookPoint<TurnFailure, RetryAnswer>({
  name: "turnFailed",
  combine: "first",
  timeoutMs: 24 * 3600_000,
  summary: "The model service failed: answer with a retry, or leave the failure to end the run",
});

export interface Overflow extends InConversation {
  /** `overflow`: the request did not fit. `incomplete`: the answer was cut at the output limit without a tool call. */
  readonly reason: "overflow" | "incomplete";
  readonly message: AssistantMessage;
  readonly error: ProviderError | undefined;
  readonly signal: AbortSignal;
}
export interface ContinueAnswer {
  /** Ask the model again. */
  readonly continue: true;
}
export const contextOverflow = defineHookPoint<Overflow, ContinueAnswer>({
  name: "contextOverflow",
  combine: "first",
  timeoutMs: 24 * 3600_000,
  summary:
    "The context is too large for the model: make room and answer with `continue`. A failed answer has left the live context",
});

export interface TurnEnded extends InConversation {
  readonly message: AssistantMessage;
  readonly toolResults: readonly ToolResultMessage[];
  /** True when the run goes on by itself: there were tool calls. */
  readonly continues: boolean;
  readonly signal: AbortSignal;
}
export const turnEnded = defineHookPoint<TurnEnded>({
  name: "turnEnded",
  combine: "series",
  timeoutMs: 24 * 3600_000,
  summary: "A turn is over and the next one has not begun: the place for maintenance such as compaction",
});

export interface RunEnded extends InConversation {
  readonly status: RunStatus;
  readonly messages: readonly AgentMessage[];
  readonly signal: AbortSignal;
}
export const runEnded = defineHookPoint<RunEnded>({
  name: "runEnded",
  combine: "series",
  timeoutMs: 24 * 3600_000,
  summary: "The run is about to end. What is queued here, unless it was aborted, continues it before agent_end",
});

export interface Aborting extends InConversation {
  readonly reason: string;
}
export const aborting = defineHookPoint<Aborting>({
  name: "aborting",
  combine: "parallel",
  timeoutMs: 2000,
  summary: "The host aborts: end what belongs to the conversation besides its run (shell commands, jobs)",
});

export interface SessionChange extends InConversation {
  readonly reason: "new" | "resume" | "handoff" | "fork" | "startup";
  /** The file switched to, where there is one. */
  readonly target: string | undefined;
}
export interface CancelAnswer {
  readonly cancel: true;
}
export const sessionBeforeSwitch = defineHookPoint<SessionChange, CancelAnswer>({
  name: "sessionBeforeSwitch",
  combine: "first",
  summary: "Before another session takes the place of this one: answer with `cancel` to stay",
});
export interface SessionSwitched extends InConversation {
  readonly reason: SessionChange["reason"];
  readonly previousFile: string | undefined;
}
export const sessionSwitched = defineHookPoint<SessionSwitched>({
  name: "sessionSwitched",
  combine: "series",
  summary: "`conversation` is the attached one now",
});
export interface SessionBranch extends InConversation {
  readonly entryId: string;
}
export const sessionBeforeBranch = defineHookPoint<SessionBranch, CancelAnswer>({
  name: "sessionBeforeBranch",
  combine: "first",
  summary: "Before a branch is made at an entry: answer with `cancel` to refuse",
});
export const sessionBranched = defineHookPoint<SessionSwitched>({
  name: "sessionBranched",
  combine: "series",
  summary: "`conversation` is the branch",
});
export interface SessionClosing extends InConversation {
  readonly reason: "closed" | "shutdown";
}
export const sessionClosing = defineHookPoint<SessionClosing>({
  name: "sessionClosing",
  combine: "series",
  timeoutMs: 2000,
  summary: "The conversation is about to be closed",
});

export interface DialogWithheld extends InConversation {
  /** The UI method, e.g. `confirm`. */
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
}
export const dialogWithheld = defineHookPoint<DialogWithheld>({
  name: "dialogWithheld",
  combine: "parallel",
  summary: "A dialog of a conversation that is not attached took its fallback instead of being shown",
});

export interface MessageEnded extends InConversation {
  readonly message: AgentMessage;
}
export const messageEnded = defineHookPoint<MessageEnded>({
  name: "messageEnded",
  combine: "parallel",
  summary: "A message is final, stored and sent; answers are ignored",
});

export interface FrameEmitted extends InConversation {
  readonly frame: Frame;
}
export const frameEmitted = defineHookPoint<FrameEmitted>({
  name: "frameEmitted",
  combine: "parallel",
  summary: "A frame of the conversation was sent. Handlers see frames in order; message_update is merged for a slow one",
});

/** Every point of the agent layer, for the reference. */
export const agentHookPoints = [
  input,
  runStarting,
  beforeAgentStart,
  contextBuilding,
  providerRequest,
  answerStarting,
  toolObserve,
  toolRewrite,
  toolDecide,
  toolSeal,
  toolFinished,
  toolProgress,
  turnFailed,
  contextOverflow,
  turnEnded,
  runEnded,
  aborting,
  sessionBeforeSwitch,
  sessionSwitched,
  sessionBeforeBranch,
  sessionBranched,
  sessionClosing,
  dialogWithheld,
  messageEnded,
  frameEmitted,
] as const;
