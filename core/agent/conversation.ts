// A conversation: log, queues, selection and the work at hand, behind the handle that extensions see. It runs one piece of
// work at a time; what arrives meanwhile waits in a queue. Nothing here decides policy: hooks do.
import type { Frame } from "../../protocol/frame.ts";
import type { AgentMessage, AssistantMessage, BashExecutionMessage } from "../../protocol/message.ts";
import { runDetached } from "../kernel/attribution.ts";
import type { Context, Invocation } from "../kernel/context.ts";
import { type FrameDefinition, frameOf } from "../kernel/definition.ts";
import { CommandError, errorMessage } from "../kernel/errors.ts";
import type { SessionLog } from "../session/log.ts";
import { ProviderView } from "../session/repair.ts";
import { preflight } from "./ask.ts";
import { UsageMeter } from "./context-usage.ts";
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
import { aborting } from "./hook-points.ts";
import { type Input, Intake } from "./intake.ts";
import { Journal } from "./journal.ts";
import { runAgent } from "./loop.ts";
import type { ToolSchema } from "./provider.ts";
import { MessageQueue } from "./queue.ts";
import type { Run, RunConversation } from "./run.ts";
import type { Slot, SlotDefinition } from "./slot.ts";
import { SlotStore } from "./slots.ts";
import { PromptCache } from "./system-prompt.ts";
import { Taking } from "./taking.ts";
import { ToolSet } from "./tool-set.ts";
import { atMost } from "./until-aborted.ts";
import { busyError, closedError, RetryWait, refused, submissionOf, unlimited, Work } from "./work.ts";

/** `abort` frees its caller after this time, whatever still unwinds. */
const ABORT_LIMIT_MS = 2000;

export interface ConversationOptions {
  readonly env: AgentEnvironment;
  readonly log: SessionLog;
  /** Where tools work, when it is not the log's own directory because that is gone. */
  readonly cwd?: string | undefined;
  readonly selection: Selection;
  readonly isSubagent?: boolean | undefined;
  readonly activeTools?: readonly string[] | undefined;
  readonly systemPrompt?: readonly string[] | undefined;
}

export class Conversation implements RunConversation {
  readonly env: AgentEnvironment;
  readonly log: SessionLog;
  readonly cwd: string;
  readonly inbox = new MessageQueue();
  readonly tools: ToolSet;
  readonly providerView = new ProviderView();
  readonly isSubagent: boolean;
  messageUpdates: MessageUpdateMode = "full";
  readonly #closed = unlimited(new AbortController());
  readonly #out: FrameOut;
  readonly #slots: SlotStore;
  readonly #intake: Intake;
  readonly #journal: Journal;
  readonly #usage = new UsageMeter();
  readonly #retryWait = new RetryWait();
  readonly #taking = new Taking({
    released: () => {
      if (!this.#intake.release((raw, options) => this.submit(raw, options), this.isStreaming)) this.#wake();
    },
    transferred: (to) => this.#transfer(to),
  });
  readonly #prompt: PromptCache;
  readonly #selection: Selection;
  #work: Work | undefined;
  #idle: (() => void)[] = [];
  #compactions = 0;

  constructor(options: ConversationOptions) {
    this.env = options.env;
    this.log = options.log;
    this.cwd = options.cwd ?? options.log.cwd;
    this.isSubagent = options.isSubagent ?? false;
    this.#prompt = new PromptCache({ env: this.env, context: () => this.context(), fixed: options.systemPrompt });
    this.#selection = { ...options.selection };
    this.#out = new FrameOut(this.env, this, () => this.context());
    this.#slots = new SlotStore(this.log, (name, error) => this.env.reportError("mortise", `slot ${name}`, error));
    this.#intake = new Intake({
      conversation: this,
      context: (change) => this.context(change),
      now: () => this.now(),
      queue: (kind, message) => {
        this.inbox.add(kind, message);
        const delivered = this.inbox.outcomeOf(message);
        this.#wake();
        return delivered;
      },
    });
    this.#journal = new Journal(this.log, (error) => {
      if (this.signal.aborted) return;
      this.emit(notice, { level: "error", message: errorMessage(error), source: "session-persistence" });
    });
    this.tools = new ToolSet({ ctx: () => this.context(), isSubagent: this.isSubagent, active: options.activeTools });
  }

  get id(): string {
    return this.log.id;
  }
  get selection(): Readonly<Selection> {
    return this.#selection;
  }
  get isStreaming(): boolean {
    return this.#work !== undefined;
  }
  get isCompacting(): boolean {
    return this.#taking.by !== undefined || this.#compactions > 0;
  }
  get isAttached(): boolean {
    return this.#out.attached;
  }
  get takenBy(): TakenBy | undefined {
    return this.#taking.by;
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

  submit(text: Input, options: SubmitOptions = {}): Submission {
    if (options.attribution !== "agent") this.inbox.followUpsParked = false;
    if (this.signal.aborted) return refused(closedError());
    const busy = this.isStreaming || this.#taking.by !== undefined;
    if (busy && options.delivery !== undefined) return this.#intake.enqueue(text, options, options.delivery);
    if (this.#taking.by !== undefined) return this.#intake.hold(text, options);
    if (busy) return refused(busyError());
    return this.#begin(async () => {
      const message = await this.#intake.message(text, options, "prompt");
      return message && [message];
    }, options.invocation);
  }

  submitCustom(
    message: Parameters<ConversationHandle["submitCustom"]>[0],
    options: Parameters<ConversationHandle["submitCustom"]>[1] = {},
  ): Submission {
    if (this.signal.aborted) return refused(closedError());
    const full: AgentMessage = "role" in message ? message : { role: "custom", ...message, timestamp: this.now() };
    if (options.delivery === "nextTurn") {
      this.inbox.add("nextTurn", full);
      return submissionOf(Promise.resolve({ status: "queued", messages: [] }));
    }
    const wakes = options.triggerTurn === true;
    if (this.isStreaming || this.#taking.by !== undefined) {
      this.inbox.add(options.delivery === "followUp" ? "followUp" : "steering", full);
      if (wakes && options.invocation !== undefined) options.invocation.agentInvoked = true;
      return submissionOf(Promise.resolve({ status: "queued", messages: [] }));
    }
    if (wakes) return this.#begin(async () => [full], options.invocation);
    this.store(full);
    return submissionOf(Promise.resolve({ status: "handled", messages: [] }));
  }

  continue(options: { invocation?: Invocation | undefined } = {}): Submission {
    if (this.signal.aborted) return refused(closedError());
    if (this.isStreaming || this.#taking.by !== undefined) return refused(busyError());
    const last = this.messages.at(-1);
    const answered =
      last === undefined || (last.role === "assistant" && last.stopReason !== "error" && last.stopReason !== "aborted");
    if (answered && !this.inbox.wakes) return refused(new CommandError("No messages to continue from"));
    return this.#begin(async () => [], options.invocation);
  }

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
      const key = await preflight(this.context(), this.#selection.model, work.signal);
      if (work.invocation !== undefined) work.invocation.agentInvoked = true;
      work.accept();
      if (this.#journal.needsPreparing) await this.#journal.prepare();
      this.invalidatePrompt();
      this.tools.invalidate();
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
    this.inbox.ended(outcome);
    if (outcome.status === "completed") this.#wake();
  }

  /** `isStreaming` is false before agent_end goes out: a host that reacts to it finds the conversation free. */
  #endWork(work: Work): void {
    if (this.#work === work) this.#work = undefined;
    this.flushRecords();
    for (const resolve of this.#idle.splice(0)) resolve();
  }

  /** Starts a run for what is queued, when nothing else is going on. */
  #wake(): void {
    if (this.isStreaming || this.#taking.by !== undefined || this.signal.aborted || !this.inbox.wakes) return;
    if (this.#selection.model === undefined) return;
    this.#begin(async () => (this.inbox.wakes ? [] : undefined), undefined);
  }

  async abort(
    reason = "Interrupted by user",
    options: { resume?: boolean | undefined; park?: boolean | undefined } = {},
  ): Promise<void> {
    const ctx = this.context();
    const handlers = ctx.hasHooks(aborting) ? ctx.hook(aborting, { conversation: this, reason }) : undefined;
    // Taken down first: what waited for a compaction starts when it is given up, and is not meant.
    const work = this.#work;
    if (work !== undefined && options.park !== false) this.inbox.followUpsParked = true;
    work?.abort(reason);
    const released = this.#taking.abort(reason);
    await atMost(Promise.all([handlers, work?.submission.settled, released]), ABORT_LIMIT_MS);
    const busy = work !== undefined || released !== undefined;
    if (busy && options.resume !== false) setImmediate(() => this.#wake());
  }

  abortRetry(): boolean {
    return this.#retryWait.cancel();
  }

  waitForRetry(delayMs: number, signal: AbortSignal): Promise<boolean> {
    return this.#retryWait.wait(delayMs, signal);
  }

  async whenIdle(): Promise<void> {
    while (this.#work !== undefined) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  take(by: TakenBy): Taken {
    return this.#taking.take(by);
  }

  /** Queued and held messages go on in `to`, in their order. */
  #transfer(to: ConversationHandle): void {
    this.inbox.moveTo(to.queue);
    const held = this.#intake.release((raw, options) => to.submit(raw, options), to.isStreaming);
    if (!(to instanceof Conversation)) return;
    to.inbox.takeOver(this.inbox);
    if (!held) to.inbox.followUpsParked = this.inbox.followUpsParked;
    to.#wake();
  }

  markCompacting(): () => void {
    this.#compactions++;
    let marked = true;
    return () => {
      if (marked) this.#compactions--;
      marked = false;
    };
  }

  store(message: AgentMessage, options: { started?: boolean } = {}): void {
    if (options.started !== true) this.emit(messageStart, { message });
    this.#journal.append(message);
    this.#out.emit(frameOf(messageEnd, { message }), messageEnd.scope, message);
  }

  dropFromContext(message: AssistantMessage): void {
    this.#journal.drop(message);
  }

  recordBash(message: BashExecutionMessage): void {
    this.#journal.record(message, this.isStreaming);
  }

  flushRecords(): void {
    this.#journal.flushRecords();
  }

  select(change: Partial<Selection>): void {
    this.#journal.select(this.#selection, change);
    Object.assign(this.#selection, change);
    this.invalidatePrompt();
  }

  /** Writes the selection into a log that knows none yet. */
  recordSelection(): void {
    this.#journal.select({ model: undefined, thinkingLevel: "off" }, this.#selection);
  }

  slot<T>(definition: SlotDefinition<T>): Slot<T> {
    return this.#slots.slot(definition);
  }

  reload(): void {
    this.#slots.reload();
  }

  lastAssistant(): AssistantMessage | undefined {
    return this.messages.findLast((message) => message.role === "assistant");
  }

  contextUsage(): ContextUsage | undefined {
    const { model } = this.#selection;
    return model && this.#usage.read(this.log.contextSize.tokens, model.contextWindow);
  }

  /** The same promise until something changes, so that whoever polls can tell. */
  systemPrompt(): Promise<string[]> {
    return this.#prompt.blocks();
  }

  /** The next reader renders the prompt again: at the start of a run, and when the tools or the model change. */
  invalidatePrompt(): void {
    this.#prompt.invalidate();
  }

  toolSchemas(): readonly ToolSchema[] {
    return this.tools.schemas();
  }

  setActiveTools(names: readonly string[] | undefined): void {
    this.tools.setActive(names);
    this.invalidatePrompt();
  }

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

  /** Ends everything and lets the file go. False when the file does not hold everything that was said. Idempotent. */
  async close(): Promise<boolean> {
    if (this.signal.aborted) return true;
    this.inbox.abandon("The conversation was closed");
    this.#intake.drop();
    this.#closed.abort(new Error("The conversation was closed"));
    await this.abort("The conversation was closed", { resume: false });
    return this.#journal.close();
  }
}
