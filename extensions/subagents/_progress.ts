// What a subagent has done so far, read from its frames.
import {
  type AgentProgress,
  AssistantMessage as Assistant,
  type AssistantMessage,
  type ConversationHandle,
  Usage,
  z,
} from "mortise/extension";

/** 150 ms: frames and tool updates tell of progress no more often. */
export const PROGRESS_INTERVAL_MS = 150;
const RECENT_TOOLS = 10;
const RECENT_LINES = 8;
/** Characters of a line or of arguments. */
const SHORT = 200;
const TAIL = 2000;

const Update = z.looseObject({ assistantMessageEvent: z.looseObject({ type: z.string(), delta: z.string().optional() }) });
const ToolStart = z.looseObject({ toolCallId: z.string(), toolName: z.string(), args: z.unknown() });
const ToolEnd = z.looseObject({ toolCallId: z.string() });
const Ended = z.looseObject({ message: z.looseObject({ role: z.string() }) });
/** A result of `task`: what its own subagents used. */
const Spent = z.looseObject({ details: z.looseObject({ usage: Usage }) });
const RetryStart = z.looseObject({ attempt: z.number(), maxAttempts: z.number(), delayMs: z.number(), errorMessage: z.string() });
const RetryEnd = z.looseObject({ success: z.boolean(), attempt: z.number(), finalError: z.string().optional() });

type Fixed = Pick<AgentProgress, "index" | "id" | "agent" | "agentSource" | "task" | "assignment" | "description">;

export class ProgressTracker {
  status: AgentProgress["status"] = "pending";
  requests = 0;
  tokens = 0;
  usage: Usage | undefined;
  readonly #fixed: Fixed;
  readonly #changed: () => void;
  readonly #running = new Map<string, { tool: string; args: string; startMs: number }>();
  #recentTools: AgentProgress["recentTools"] = [];
  #tail = "";
  #toolCount = 0;
  #began: number | undefined;
  #ended: number | undefined;
  #conversation: ConversationHandle | undefined;
  #retry: Pick<AgentProgress, "retryState" | "retryFailure"> = {};

  constructor(fixed: Fixed, changed: () => void) {
    this.#fixed = fixed;
    this.#changed = changed;
  }

  /** The end of what it has said so far. */
  get said(): string {
    return this.#tail.trim();
  }

  get durationMs(): number {
    return this.#began === undefined ? 0 : (this.#ended ?? Date.now()) - this.#began;
  }

  start(conversation: ConversationHandle): void {
    this.status = "running";
    this.#began = Date.now();
    this.#conversation = conversation;
  }

  end(status: AgentProgress["status"]): void {
    this.status = status;
    this.#ended = Date.now();
    this.#running.clear();
  }

  /** @param frame of the subagent's conversation. */
  take(frame: { type: string }): void {
    switch (frame.type) {
      case "message_update":
        return this.#update(frame);
      case "message_end":
        return this.#message(frame);
      case "tool_execution_start":
        return this.#toolStart(frame);
      case "tool_execution_end":
        return this.#toolEnd(frame);
      case "auto_retry_start":
      case "auto_retry_end":
        return this.#retried(frame);
    }
  }

  read(): AgentProgress {
    const current = [...this.#running.values()].at(-1);
    const model = this.#conversation?.selection.model;
    const usage = this.#conversation?.contextUsage();
    return {
      ...this.#fixed,
      status: this.status,
      ...(current === undefined
        ? {}
        : { currentTool: current.tool, currentToolArgs: current.args, currentToolStartMs: current.startMs }),
      recentTools: this.#recentTools,
      recentOutput: lastLines(this.#tail),
      toolCount: this.#toolCount,
      requests: this.requests,
      tokens: this.tokens,
      cost: this.usage?.cost.total ?? 0,
      durationMs: this.durationMs,
      ...(usage === undefined ? {} : { contextTokens: usage.tokens, contextWindow: usage.contextWindow }),
      ...(model === undefined ? {} : { resolvedModel: `${model.provider}/${model.id}` }),
      ...this.#retry,
    };
  }

  #update(frame: unknown): void {
    const event = Update.safeParse(frame).data?.assistantMessageEvent;
    if (event?.type !== "text_delta" || event.delta === undefined) return;
    this.#tail = (this.#tail + event.delta).slice(-TAIL);
    this.#changed();
  }

  #message(frame: unknown): void {
    const message = Ended.safeParse(frame).data?.message;
    if (message?.role === "toolResult") return this.#spent(message);
    if (message?.role !== "assistant") return;
    const answer = Assistant.safeParse(message).data;
    // The message that only says that the run was given up is no answer of the model.
    if (answer === undefined || (answer.stopReason === "aborted" && answer.content.length === 0)) return;
    this.requests++;
    this.#add(answer);
    this.#tail += "\n";
    this.#changed();
  }

  #add({ usage }: AssistantMessage): void {
    this.tokens += usage.input + usage.output + usage.cacheWrite;
    this.#use(usage);
  }

  /** What its own subagents used was used for it, so that its parent's sum holds all levels. */
  #spent(message: unknown): void {
    const usage = Spent.safeParse(message).data?.details.usage;
    if (usage === undefined) return;
    this.#use(usage);
    this.#changed();
  }

  #use(usage: Usage): void {
    this.usage = this.usage === undefined ? usage : addUsage(this.usage, usage);
  }

  #toolStart(frame: unknown): void {
    const start = ToolStart.safeParse(frame).data;
    if (start === undefined) return;
    this.#toolCount++;
    const args = short(JSON.stringify(start.args) ?? "");
    this.#running.set(start.toolCallId, { tool: start.toolName, args, startMs: Date.now() });
    this.#changed();
  }

  #toolEnd(frame: unknown): void {
    const id = ToolEnd.safeParse(frame).data?.toolCallId ?? "";
    const call = this.#running.get(id);
    if (call === undefined) return;
    this.#running.delete(id);
    this.#recentTools = [...this.#recentTools, { tool: call.tool, args: call.args, endMs: Date.now() }].slice(-RECENT_TOOLS);
    this.#changed();
  }

  #retried(frame: unknown): void {
    const start = RetryStart.safeParse(frame).data;
    const end = RetryEnd.safeParse(frame).data;
    if (start !== undefined) {
      const { attempt, maxAttempts, delayMs, errorMessage } = start;
      this.#retry = { retryState: { attempt, maxAttempts, delayMs, errorMessage, startedAtMs: Date.now() } };
    } else if (end !== undefined) {
      this.#retry = end.success ? {} : { retryFailure: { attempt: end.attempt, errorMessage: end.finalError ?? "" } };
    }
    this.#changed();
  }
}

function addUsage(a: Usage, b: Usage): Usage {
  const reasoningTokens = (a.reasoningTokens ?? 0) + (b.reasoningTokens ?? 0);
  return {
    ...(reasoningTokens === 0 ? {} : { reasoningTokens }),
    input: a.input + b.input,
    output: a.output + b.output,
    cacheRead: a.cacheRead + b.cacheRead,
    cacheWrite: a.cacheWrite + b.cacheWrite,
    totalTokens: a.totalTokens + b.totalTokens,
    cost: {
      input: a.cost.input + b.cost.input,
      output: a.cost.output + b.cost.output,
      cacheRead: a.cost.cacheRead + b.cost.cacheRead,
      cacheWrite: a.cost.cacheWrite + b.cost.cacheWrite,
      total: a.cost.total + b.cost.total,
    },
  };
}

function lastLines(text: string): string[] {
  return text
    .split("\n")
    .filter((line) => line.trim() !== "")
    .slice(-RECENT_LINES)
    .map(short);
}

function short(text: string): string {
  return text.length <= SHORT ? text : `${text.slice(0, SHORT).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

/** Calls `send` at once, then no more often than every 150 ms, with the last change never lost. */
export class Coalesced {
  readonly #send: () => void;
  #sentAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(send: () => void) {
    this.#send = send;
  }

  touch(): void {
    if (this.#timer !== undefined || this.#closed) return;
    const wait = this.#sentAt + PROGRESS_INTERVAL_MS - performance.now();
    if (wait <= 0) this.#flush();
    else this.#timer = setTimeout(() => this.#flush(), wait);
  }

  /** Nothing is sent after this. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  #flush(): void {
    this.#timer = undefined;
    this.#sentAt = performance.now();
    this.#send();
  }
}
