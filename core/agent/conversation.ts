// A conversation: log, queues, selection and the work at hand, behind the handle that extensions see. It runs one piece of
// work at a time; what arrives meanwhile waits in a queue. Nothing here decides policy: hooks do.
import type { InputContent, TextContent } from "../../protocol/content.ts";
import type { Frame } from "../../protocol/frame.ts";
import type { AgentMessage, AssistantMessage, BashExecutionMessage, CustomMessage, UserMessage } from "../../protocol/message.ts";
import { runDetached } from "../kernel/attribution.ts";
import type { Context, Invocation } from "../kernel/context.ts";
import { type FrameDefinition, frameOf } from "../kernel/definition.ts";
import { CommandError, errorMessage } from "../kernel/errors.ts";
import { Models, type ResolvedKey } from "../services/models.ts";
import type { SessionLog } from "../session/log.ts";
import { NO_MODEL } from "./ask.ts";
import { contextUsage } from "./context-usage.ts";
import type {
  ContextUsage,
  ConversationHandle,
  MessageUpdateMode,
  RunOutcome,
  Selection,
  Submission,
  SubmitOptions,
  Taken,
  TakenBy,
} from "./conversation-types.ts";
import type { AgentEnvironment } from "./environment.ts";
import { agentEnd, messageEnd, messageStart, notice } from "./events.ts";
import { FrameOut } from "./frame-out.ts";
import { aborting, input } from "./hook-points.ts";
import { runAgent } from "./loop.ts";
import type { ToolSchema } from "./provider.ts";
import { MessageQueue } from "./queue.ts";
import type { Run, RunConversation } from "./run.ts";
import type { Slot, SlotDefinition } from "./slot.ts";
import { SlotStore } from "./slots.ts";
import { renderSystemPrompt } from "./system-prompt.ts";
import { ToolSet } from "./tool-set.ts";
import { abortError, submissionOf, Work } from "./work.ts";

/** `abort` frees its caller after this time, whatever still unwinds. */
const ABORT_LIMIT_MS = 2000;
const BUSY = "Agent is already processing. Use steer() or followUp() to queue messages, or wait for completion.";

export interface ConversationOptions {
  readonly env: AgentEnvironment;
  readonly log: SessionLog;
  readonly selection: Selection;
  readonly isSubagent?: boolean | undefined;
  readonly activeTools?: readonly string[] | undefined;
  readonly systemPrompt?: readonly string[] | undefined;
}

interface Held {
  readonly text: string | InputContent[];
  readonly options: SubmitOptions;
  readonly start: (submission: Submission) => void;
}

export class Conversation implements RunConversation {
  readonly env: AgentEnvironment;
  readonly log: SessionLog;
  readonly inbox = new MessageQueue();
  readonly tools: ToolSet;
  readonly isSubagent: boolean;
  messageUpdates: MessageUpdateMode = "full";
  readonly #closed = new AbortController();
  readonly #out: FrameOut;
  readonly #slots: SlotStore;
  readonly #fixedPrompt: readonly string[] | undefined;
  readonly #selection: Selection;
  #work: Work | undefined;
  #idle: (() => void)[] = [];
  #taken: { by: TakenBy; controller: AbortController; released: Promise<void> } | undefined;
  #compactions = 0;
  /** Prompts that came while the conversation was taken. */
  #held: Held[] = [];
  #records: BashExecutionMessage[] = [];
  #retryWait: AbortController | undefined;
  /** Keeps queued input in order while handlers look at it. */
  #inputTail: Promise<void> | undefined;
  #prompt: { version: number; blocks: Promise<string[]> } | undefined;
  #usage: { last: AgentMessage | undefined; length: number; window: number | undefined; value: ContextUsage } | undefined;
  #logFailed = false;

  constructor(options: ConversationOptions) {
    this.env = options.env;
    this.log = options.log;
    this.isSubagent = options.isSubagent ?? false;
    this.#fixedPrompt = options.systemPrompt;
    this.#selection = { ...options.selection };
    this.#out = new FrameOut(this.env, this, () => this.context());
    this.#slots = new SlotStore(this.log, (name, error) => this.env.reportError("mortise", `slot ${name}`, error));
    this.tools = new ToolSet({ ctx: () => this.context(), isSubagent: this.isSubagent, active: options.activeTools });
  }

  get id(): string {
    return this.log.id;
  }
  get cwd(): string {
    return this.log.cwd;
  }
  get selection(): Readonly<Selection> {
    return this.#selection;
  }
  get isStreaming(): boolean {
    return this.#work !== undefined;
  }
  get isCompacting(): boolean {
    return this.#taken !== undefined || this.#compactions > 0;
  }
  get isAttached(): boolean {
    return this.#out.attached;
  }
  get takenBy(): TakenBy | undefined {
    return this.#taken?.by;
  }
  get signal(): AbortSignal {
    return this.#closed.signal;
  }
  get messages(): readonly AgentMessage[] {
    return this.log.context();
  }
  get queue(): ConversationHandle["queue"] {
    return this.inbox;
  }
  get activeTools(): string[] | undefined {
    return this.tools.active;
  }
  set activeTools(names: string[] | undefined) {
    this.setActiveTools(names);
  }
  now(): number {
    return this.env.now();
  }

  /** A context of the daemon's own code for this conversation. */
  context(change: { signal?: AbortSignal | undefined; invocation?: Invocation | undefined } = {}): Context {
    return this.env.context(undefined, { ...change, locals: { conversation: this } });
  }

  // --- what comes in -------------------------------------------------------------------------------------------------

  submit(text: string | InputContent[], options: SubmitOptions = {}): Submission {
    if (options.attribution !== "agent") this.inbox.followUpsParked = false;
    if (this.signal.aborted) return refused(new CommandError("The conversation is closed", "not_found"));
    if (this.#taken !== undefined && options.delivery === undefined) return this.#hold(text, options);
    if (options.delivery !== undefined && (this.isStreaming || this.#taken !== undefined))
      return this.#enqueue(text, options, options.delivery);
    if (this.isStreaming) return refused(new CommandError(BUSY, "busy"));
    return this.#begin(async () => {
      const taken = await this.#input(text, options, "prompt");
      return taken === undefined ? undefined : [userMessage(taken, options, this.now(), false)];
    }, options.invocation);
  }

  submitCustom: ConversationHandle["submitCustom"] = (message, options = {}) => {
    const full: AgentMessage =
      "role" in message ? message : ({ role: "custom", ...message, timestamp: this.now() } satisfies CustomMessage);
    if (this.signal.aborted) return refused(new CommandError("The conversation is closed", "not_found"));
    if (options.delivery === "nextTurn") {
      this.inbox.add("nextTurn", full);
      return submissionOf(Promise.resolve());
    }
    const wakes = options.triggerTurn === true;
    if (this.isStreaming || this.#taken !== undefined) {
      this.inbox.add(options.delivery === "followUp" ? "followUp" : "steering", full);
      if (wakes && options.invocation !== undefined) options.invocation.agentInvoked = true;
      return submissionOf(Promise.resolve());
    }
    if (wakes) return this.#begin(async () => [full], options.invocation);
    this.store(full);
    return submissionOf(Promise.resolve(), "handled");
  };

  continue(options: { invocation?: Invocation | undefined } = {}): Submission {
    if (this.signal.aborted) return refused(new CommandError("The conversation is closed", "not_found"));
    if (this.isStreaming || this.#taken !== undefined) return refused(new CommandError(BUSY, "busy"));
    const last = this.messages.at(-1);
    if (
      !this.inbox.wakes &&
      (last === undefined || (last.role === "assistant" && last.stopReason !== "error" && last.stopReason !== "aborted"))
    ) {
      return refused(new CommandError("No messages to continue from"));
    }
    return this.#begin(async () => [], options.invocation);
  }

  /** Queues behind earlier input; when the run is over by then, starts one. */
  #enqueue(text: string | InputContent[], options: SubmitOptions, delivery: "steer" | "followUp"): Submission {
    if (options.invocation !== undefined) options.invocation.agentInvoked = true;
    const put = (content: string | InputContent[]) => {
      this.inbox.add(
        delivery === "steer" ? "steering" : "followUp",
        userMessage(content, options, this.now(), delivery === "steer"),
      );
      this.#wake();
    };
    if (this.#inputTail === undefined && !this.#hasInputHook(options)) {
      put(text);
      return submissionOf(Promise.resolve());
    }
    const work = (this.#inputTail ?? Promise.resolve()).then(async () => {
      const taken = await this.#input(text, options, delivery);
      if (taken !== undefined) put(taken);
    });
    const tail = work
      .catch(() => {})
      .finally(() => {
        if (this.#inputTail === tail) this.#inputTail = undefined;
      });
    this.#inputTail = tail;
    return submissionOf(work);
  }

  #hold(text: string | InputContent[], options: SubmitOptions): Submission {
    if (options.invocation !== undefined) options.invocation.agentInvoked = true;
    let start: (submission: Submission) => void = () => {};
    const settled = new Promise<RunOutcome>((resolve) => {
      start = (submission) => void submission.settled.then(resolve);
    });
    this.#held.push({ text, options, start: (submission) => start(submission) });
    return Object.assign(Promise.resolve(), { settled });
  }

  #hasInputHook(options: SubmitOptions): boolean {
    return options.skipInputHook !== true && this.context().hasHooks(input);
  }

  /** The content after the `input` handlers; undefined when one of them handled it. */
  async #input(
    raw: string | InputContent[],
    options: SubmitOptions,
    delivery: "prompt" | "steer" | "followUp",
  ): Promise<InputContent[] | undefined> {
    const content = blocksOf(raw, options.images);
    if (!this.#hasInputHook(options)) return content;
    const text = content
      .filter((block): block is TextContent => block.type === "text")
      .map((block) => block.text)
      .join("\n");
    const images = content.filter((block) => block.type === "image");
    const attribution = options.attribution ?? "user";
    const ctx = this.context({ invocation: options.invocation });
    const value = await ctx.hook(input, { conversation: this, text, images, delivery, attribution });
    if (value === undefined) return content;
    if (value.handled === true) return undefined;
    return value.text === text && value.images === images ? content : blocksOf(value.text, value.images);
  }

  // --- work ----------------------------------------------------------------------------------------------------------

  /** Reserves the conversation now and runs in a later turn of the event loop, so that an acknowledgement goes out first. */
  #begin(prepare: Work["prepare"], invocation: Invocation | undefined): Submission {
    const work = new Work(prepare, invocation);
    this.#work = work;
    if (invocation !== undefined) {
      const pending = work.submission.then(undefined, () => {}).finally(() => invocation.pending.delete(pending));
      invocation.pending.add(pending);
    }
    runDetached(() => setImmediate(() => void this.#runWork(work)));
    return work.submission;
  }

  async #runWork(work: Work): Promise<void> {
    let outcome: RunOutcome;
    try {
      const prompts = await work.prepare(work.signal);
      if (prompts === undefined) {
        this.#endWork(work);
        work.settle({ status: "handled", messages: [] });
        return;
      }
      const key = await this.#preflight();
      if (work.invocation !== undefined) work.invocation.agentInvoked = true;
      work.accept();
      this.invalidatePrompt();
      const ctx = this.context({ signal: work.signal, invocation: work.invocation });
      const run: Run = { conversation: this, ctx, signal: work.signal, prompts, key, produced: [], systemPrompt: undefined };
      outcome = await runAgent(run);
    } catch (error) {
      this.#endWork(work);
      work.refuse(error, { status: "error", messages: [], errorMessage: errorMessage(error) });
      return;
    }
    this.#endWork(work);
    this.emit(agentEnd, { messages: [...outcome.messages] });
    work.settle(outcome);
    if (outcome.status === "completed") this.#wake();
  }

  /** `isStreaming` is false before agent_end goes out: a host that reacts to it finds the conversation free. */
  #endWork(work: Work): void {
    if (this.#work === work) this.#work = undefined;
    this.flushRecords();
    for (const resolve of this.#idle.splice(0)) resolve();
  }

  /** Refuses work that cannot reach a model, before anything is stored. */
  async #preflight(): Promise<ResolvedKey | undefined> {
    const { model } = this.#selection;
    if (model === undefined) throw new CommandError(NO_MODEL);
    return this.context().tryUse(Models)?.key(model);
  }

  /** Starts a run for what is queued, when nothing else is going on. */
  #wake(): void {
    if (this.isStreaming || this.#taken !== undefined || this.signal.aborted || !this.inbox.wakes) return;
    if (this.#selection.model === undefined) return;
    this.#begin(async () => (this.inbox.wakes ? [] : undefined), undefined);
  }

  async abort(reason = "Interrupted by user", options: { resume?: boolean | undefined } = {}): Promise<void> {
    const ctx = this.context();
    const handlers = ctx.hasHooks(aborting) ? ctx.hook(aborting, { conversation: this, reason }) : undefined;
    // Taken down first: what waited for a compaction starts when it is given up, and is not meant.
    const work = this.#work;
    const taken = this.#taken;
    if (work !== undefined) this.inbox.followUpsParked = true;
    work?.abort(reason);
    taken?.controller.abort(abortError(reason));
    await atMost(Promise.all([handlers, work?.submission.settled, taken?.released]), ABORT_LIMIT_MS);
    const busy = work !== undefined || taken !== undefined;
    if (busy && options.resume !== false) setImmediate(() => this.#wake());
  }

  abortRetry(): boolean {
    const waiting = this.#retryWait !== undefined;
    this.#retryWait?.abort();
    return waiting;
  }

  waitForRetry(delayMs: number, signal: AbortSignal): Promise<boolean> {
    const wait = new AbortController();
    this.#retryWait = wait;
    return new Promise<boolean>((resolve) => {
      const end = (goOn: boolean) => {
        clearTimeout(timer);
        signal.removeEventListener("abort", giveUp);
        this.#retryWait = undefined;
        resolve(goOn);
      };
      const giveUp = () => end(false);
      const timer = setTimeout(() => end(true), delayMs);
      signal.addEventListener("abort", giveUp, { once: true });
      wait.signal.addEventListener("abort", giveUp, { once: true });
      if (signal.aborted) giveUp();
    });
  }

  async whenIdle(): Promise<void> {
    while (this.#work !== undefined) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  take(by: TakenBy): Taken {
    if (this.#taken !== undefined) {
      throw new CommandError(
        this.#taken.by === "compact" ? "Compaction already in progress" : "A handoff is in progress",
        "busy",
      );
    }
    let freed: () => void = () => {};
    const released = new Promise<void>((resolve) => {
      freed = resolve;
    });
    const taken = { by, controller: new AbortController(), released };
    this.#taken = taken;
    return {
      signal: taken.controller.signal,
      release: () => {
        if (this.#taken !== taken) return;
        this.#taken = undefined;
        freed();
        this.#releaseHeld();
      },
    };
  }

  /** Prompts that waited: the first starts a run, the others follow it. */
  #releaseHeld(): void {
    const [first, ...others] = this.#held.splice(0);
    if (first === undefined) return this.#wake();
    first.start(this.submit(first.text, this.isStreaming ? { ...first.options, delivery: "followUp" } : first.options));
    for (const held of others) held.start(this.submit(held.text, { ...held.options, delivery: "followUp" }));
  }

  markCompacting(): () => void {
    this.#compactions++;
    let marked = true;
    return () => {
      if (marked) this.#compactions--;
      marked = false;
    };
  }

  // --- what is kept --------------------------------------------------------------------------------------------------

  store(message: AgentMessage, options: { started?: boolean } = {}): void {
    if (options.started !== true) this.emit(messageStart, { message });
    this.#append(message);
    this.#out.emit(frameOf(messageEnd, { message }), messageEnd.scope, message);
  }

  /** The file is there before the first message is told as final, and so before the first request. */
  #append(message: AgentMessage): void {
    try {
      if (message.role === "custom") {
        const { role: _, timestamp: __, ...fields } = message;
        this.log.append({ type: "custom_message", ...fields });
      } else {
        this.log.append({ type: "message", message });
      }
      if (message.role !== "bashExecution" && !this.log.isMaterialized) this.log.materialize();
      this.#logFailed = false;
    } catch (error) {
      // The log keeps the entry in memory: the run goes on, the person is told once.
      if (!this.#logFailed && !this.signal.aborted)
        this.emit(notice, { level: "error", message: errorMessage(error), source: "session-persistence" });
      this.#logFailed = true;
    }
  }

  dropFromContext(message: AssistantMessage): void {
    const entry = this.log.leafId === null ? undefined : this.log.entry(this.log.leafId);
    // Something was stored after it: it stays in the path, and what goes to the provider leaves it out.
    if (entry?.type === "message" && entry.message === message) this.log.branchTo(this.log.parentOf(entry.id));
  }

  recordBash(message: BashExecutionMessage): void {
    if (this.isStreaming) this.#records.push(message);
    else this.#append(message);
  }

  flushRecords(): void {
    for (const record of this.#records.splice(0)) this.#append(record);
  }

  select(change: Partial<Selection>): void {
    const { model, thinkingLevel } = change;
    if (model !== undefined && (model.provider !== this.#selection.model?.provider || model.id !== this.#selection.model.id)) {
      this.#record(() => this.log.recordModel(model.provider, model.id));
    }
    if (thinkingLevel !== undefined && thinkingLevel !== this.#selection.thinkingLevel) {
      this.#record(() => this.log.recordThinkingLevel(thinkingLevel));
    }
    Object.assign(this.#selection, change);
    this.invalidatePrompt();
  }

  #record(write: () => void): void {
    try {
      write();
    } catch (error) {
      this.emit(notice, { level: "error", message: errorMessage(error), source: "session-persistence" });
    }
  }

  slot<T>(definition: SlotDefinition<T>): Slot<T> {
    return this.#slots.slot(definition);
  }

  reload(): void {
    this.#slots.reload();
    this.#usage = undefined;
  }

  lastAssistant(): AssistantMessage | undefined {
    return this.messages.findLast((message) => message.role === "assistant");
  }

  contextUsage(): ContextUsage | undefined {
    const { messages } = this;
    const window = this.#selection.model?.contextWindow;
    if (this.#selection.model === undefined) return undefined;
    const last = messages.at(-1);
    const known = this.#usage;
    if (known !== undefined && known.last === last && known.length === messages.length && known.window === window)
      return known.value;
    const value = contextUsage(messages, window);
    this.#usage = { last, length: messages.length, window, value };
    return value;
  }

  // --- what the model is told ----------------------------------------------------------------------------------------

  async systemPrompt(): Promise<string[]> {
    if (this.#fixedPrompt !== undefined) return [...this.#fixedPrompt];
    const { version } = this.env.registry;
    if (this.#prompt?.version !== version) {
      this.#prompt = { version, blocks: renderSystemPrompt(this.context(), this.env.launch) };
    }
    return this.#prompt.blocks;
  }

  /** The next reader renders the prompt again: at the start of a run, and when the tools or the model change. */
  invalidatePrompt(): void {
    this.#prompt = undefined;
  }

  toolSchemas(): readonly ToolSchema[] {
    return this.tools.schemas();
  }

  setActiveTools(names: readonly string[] | undefined): void {
    this.tools.setActive(names);
    this.invalidatePrompt();
  }

  // --- what goes out -------------------------------------------------------------------------------------------------

  emit<T>(frame: FrameDefinition<T>, fields: T): void {
    this.#out.emit(frameOf(frame, fields), frame.scope);
  }
  emitRaw(frame: Frame): void {
    this.#out.emit(frame, "conversation");
  }
  onFrame(listener: (frame: Frame) => void): () => void {
    return this.#out.listen(listener);
  }

  /** Called by the table of conversations. */
  setAttached(attached: boolean): void {
    this.#out.attached = attached;
  }

  /** Ends everything and lets the file go. Idempotent. */
  async close(): Promise<void> {
    if (this.signal.aborted) return;
    this.inbox.drain();
    this.#held = [];
    this.#closed.abort(new Error("The conversation was closed"));
    await this.abort("The conversation was closed", { resume: false });
    this.#record(() => this.log.close());
  }
}

function refused(error: CommandError): Submission {
  // Later than the acknowledgement of the command at hand: late failures come second (000_…, "Edge behavior").
  return submissionOf(new Promise((_resolve, reject) => setImmediate(() => reject(error))));
}

function blocksOf(content: string | readonly InputContent[], images: readonly InputContent[] = []): InputContent[] {
  const blocks: readonly InputContent[] = typeof content === "string" ? [{ type: "text", text: content }] : content;
  return [...blocks, ...images];
}

function userMessage(
  content: string | InputContent[],
  options: SubmitOptions,
  timestamp: number,
  steering: boolean,
): UserMessage {
  return {
    role: "user",
    content: typeof content === "string" ? blocksOf(content, options.images) : content,
    timestamp,
    ...(steering ? { steering: true } : {}),
    ...(options.attribution === undefined && !steering ? {} : { attribution: options.attribution ?? "user" }),
  };
}

/** Resolves with the promise or after `limitMs`, whatever comes first; never rejects. */
function atMost(promise: Promise<unknown>, limitMs: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, limitMs);
    promise
      .then(
        () => resolve(),
        () => resolve(),
      )
      .finally(() => clearTimeout(timer));
  });
}
