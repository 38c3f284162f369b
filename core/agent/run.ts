// What the loop works on: one piece of accepted work, and what it needs of a conversation beyond the handle extensions see.
import type { AgentMessage, AssistantMessage } from "../../protocol/message.ts";
import type { Model } from "../../protocol/model.ts";
import type { Context } from "../kernel/context.ts";
import type { HookPoint } from "../kernel/hooks.ts";
import type { ResolvedKey } from "../services/models.ts";
import type { ProviderView } from "../session/repair.ts";
import type { ConversationHandle } from "./conversation-types.ts";
import type { AgentEnvironment } from "./environment.ts";
import type { MessageQueue } from "./queue.ts";
import type { ToolSet } from "./tool-set.ts";
import { untilAborted } from "./until-aborted.ts";

export interface RunConversation extends ConversationHandle {
  readonly env: AgentEnvironment;
  readonly inbox: MessageQueue;
  readonly tools: ToolSet;
  /** The context in the form providers take, kept from request to request. */
  readonly providerView: ProviderView;
  now(): number;
  /** Tells message_start unless `started`, stores the message, tells message_end. */
  store(message: AgentMessage, options?: { started?: boolean }): void;
  /** Takes a failed answer out of the live context; it stays in the file. */
  dropFromContext(message: AssistantMessage): void;
  /** Stores records of host commands that ended during a turn. */
  flushRecords(): void;
  /** False when the wait was given up by `abort` or `abortRetry`. */
  waitForRetry(delayMs: number, signal: AbortSignal): Promise<boolean>;
}

/** One piece of accepted work. */
export interface Run {
  readonly conversation: RunConversation;
  /** The daemon's own context: conversation, invocation and the run's signal. */
  readonly ctx: Context;
  readonly signal: AbortSignal;
  /** What starts it; empty for a run that continues. */
  readonly prompts: readonly AgentMessage[];
  /** The credential found when the work was accepted, for the first request, if that still goes to this model. */
  key: { readonly model: Model; readonly resolved: ResolvedKey | undefined } | undefined;
  /** Every message it made, for agent_end. */
  readonly produced: AgentMessage[];
  /** A system prompt for this run only, set by `beforeAgentStart`. */
  systemPrompt: readonly string[] | undefined;
}

/** How long handlers may go on after the abort of the run: long enough to tell what they gave up. */
const ABORTED_HOOK_MS = 1000;

/** A point's answer; nothing once the run is aborted and the handlers had a moment to clean up. */
export function askHandlers<In, Out>(run: Run, point: HookPoint<In, Out>, value: In): Promise<Out | undefined> {
  return untilAborted(run.ctx.hook(point, value, { signal: run.signal }), run.signal, ABORTED_HOOK_MS);
}
