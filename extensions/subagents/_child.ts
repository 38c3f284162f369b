// One subagent from the queue to its result. It never rejects: whatever goes wrong is part of the result.
import {
  type AgentDefinition,
  type Context,
  type ConversationHandle,
  Conversations,
  errorMessage,
  Models,
  type RunOutcome,
  type Selection,
  type SubagentResult,
  truncateTail,
} from "mortise/extension";
import { Assignment } from "./_assignment.ts";
import { openWorktree, type Worktree } from "./_isolation.ts";
import { Coalesced, ProgressTracker } from "./_progress.ts";
import { recordEnd, recordStart } from "./_record.ts";
import type { SubagentRegistry, Tracked } from "./_registry.ts";
import type { Semaphore } from "./_semaphore.ts";
import { requestBudget } from "./settings.ts";

/** How often an agent that owes an answer in a form is reminded of it. */
const MAX_REMINDERS = 3;
/** What one subagent's answer may take up in its parent's context; the whole is kept in a file. */
const OUTPUT_LIMITS = { maxBytes: 500_000, maxLines: 5000 };
/** A run that does not end after an abort is left behind; the conversation's own limit is 2 s. */
const UNWIND_MS = 2500;

export interface ChildPlan {
  readonly tracked: Tracked;
  readonly definition: AgentDefinition;
  readonly parent: ConversationHandle;
  readonly depth: number;
  readonly context: string | undefined;
  readonly isolated: boolean;
  /** Model of `agent.agents`, before those of the definition. */
  readonly modelOverride: string | undefined;
  readonly file: string | undefined;
}

export interface ChildPorts {
  readonly ctx: Context;
  readonly registry: SubagentRegistry;
  readonly semaphore: Semaphore;
  /** Told as soon as the conversation exists, and when it is gone. */
  opened(conversation: ConversationHandle, child: Child): void;
  closed(conversation: ConversationHandle): void;
  /** Work that goes on behind the result. */
  behind(work: Promise<unknown>): void;
}

export class Child {
  readonly plan: ChildPlan;
  readonly progress: ProgressTracker;
  readonly #ports: ChildPorts;
  readonly #changed: () => void;
  readonly #frames: Coalesced;
  #conversation: ConversationHandle | undefined;
  #worktree: Worktree | undefined;
  #holds = false;
  /** Calls of its own that wait for subagents. */
  #waits = 0;
  #isolation: Pick<SubagentResult, "patchPath" | "branchName"> & { note?: string } = {};
  #result: SubagentResult | undefined;

  /** @param changed told of every change that the call's own progress shows. */
  constructor(plan: ChildPlan, ports: ChildPorts, changed: () => void) {
    const { id, index, agent, agentSource, task, assignment, description } = plan.tracked;
    this.plan = plan;
    this.#ports = ports;
    this.#changed = changed;
    this.#frames = new Coalesced(() => ports.registry.progress(plan.tracked, this.progress.read()));
    const fixed = {
      ...{ index, id, agent, agentSource, task },
      ...(assignment === undefined ? {} : { assignment }),
      ...(description === undefined ? {} : { description }),
    };
    this.progress = new ProgressTracker(fixed, () => this.#touch());
  }

  /** Gives its place up while it waits for subagents of its own, and takes one again before it goes on. */
  async whileWaiting<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    if (++this.#waits === 1) this.#release();
    try {
      return await work();
    } finally {
      if (--this.#waits === 0 && !signal.aborted) {
        await this.#ports.semaphore.acquire(signal, true).then(
          () => {
            this.#holds = true;
          },
          () => {},
        );
      }
    }
  }

  async run(signal: AbortSignal): Promise<SubagentResult> {
    let status: "completed" | "failed" | "aborted" = "aborted";
    let error: string | undefined;
    try {
      await this.#ports.semaphore.acquire(signal);
      this.#holds = true;
      signal.throwIfAborted();
      const outcome = await this.#work(signal);
      status = signal.aborted || outcome.status === "aborted" ? "aborted" : outcome.status === "error" ? "failed" : "completed";
      error = status === "completed" ? undefined : (outcome.errorMessage ?? reasonOf(signal));
    } catch (thrown) {
      status = signal.aborted ? "aborted" : "failed";
      error = signal.aborted ? reasonOf(signal) : errorMessage(thrown);
    }
    await this.#closeWorktree(status).catch((thrown: unknown) => {
      status = "failed";
      error = errorMessage(thrown);
    });
    return this.#end(status, error);
  }

  /** The result as of now: the final one, or what an abort leaves. */
  result(signal: AbortSignal): SubagentResult {
    return this.#result ?? this.#describe("aborted", reasonOf(signal));
  }

  async #work(signal: AbortSignal): Promise<RunOutcome> {
    const { plan } = this;
    if (plan.isolated) this.#worktree = await openWorktree(plan.parent.cwd, plan.tracked.id, signal);
    signal.throwIfAborted();
    const conversation = this.#open();
    const budget = new AbortController();
    const ends = AbortSignal.any([signal, budget.signal]);
    const stop = () => void conversation.abort(reasonOf(ends), { resume: false });
    ends.addEventListener("abort", stop, { once: true });
    const off = conversation.onFrame((frame) => {
      this.progress.take(frame);
      this.#ports.registry.event(plan.tracked, frame);
      if (frame.type === "message_end") this.#checkBudget(conversation, budget);
    });
    this.progress.start(conversation);
    this.#ports.registry.started(plan.tracked);
    recordStart(plan.parent, plan.tracked, plan.isolated, this.#ports.ctx.log);
    this.#touch();
    try {
      const submission = conversation.submit(plan.tracked.task, { attribution: "agent", skipInputHook: true });
      await submission;
      let outcome = await untilUnwound(submission.settled, ends);
      // Answers that did not fit were complained about when they were handed in.
      const mayTry = () => conversation.slot(Assignment).get().refusals <= MAX_REMINDERS;
      for (let reminders = 0; this.#owesAnswer(outcome) && mayTry() && reminders < MAX_REMINDERS; reminders++) {
        if (reminders === MAX_REMINDERS - 1) {
          conversation.slot(Assignment).update((assignment) => ({ ...assignment, isLastCall: true }));
        }
        const content = "You have not handed in your answer. Call the yield tool with it now.";
        const message = { role: "developer" as const, content, timestamp: Date.now(), attribution: "agent" as const };
        const again = conversation.submitCustom(message, { triggerTurn: true });
        await again;
        outcome = await untilUnwound(again.settled, ends);
      }
      if (!this.#owesAnswer(outcome)) return outcome;
      const { complaint } = conversation.slot(Assignment).get();
      const error = complaint ?? `It did not hand in its answer after ${MAX_REMINDERS} reminders`;
      return { ...outcome, status: "error", errorMessage: error };
    } finally {
      ends.removeEventListener("abort", stop);
      off();
    }
  }

  #open(): ConversationHandle {
    const { plan } = this;
    const { definition, parent, tracked } = plan;
    const { ctx } = this.#ports;
    const tools = this.#tools();
    const conversation = ctx.use(Conversations).create({
      parent,
      cwd: this.#worktree?.cwd ?? parent.cwd,
      parentSession: parent.log.file ?? parent.log.id,
      file: plan.file,
      activeTools: tools,
      selection: this.#selection(),
    });
    this.#conversation = conversation;
    // Nobody steers it but the runtime, which never wants a call to be skipped.
    conversation.queue.interruptMode = "wait";
    tracked.sessionFile = conversation.log.file;
    const { systemPrompt, output, spawns } = definition;
    conversation.slot(Assignment).set({
      ...{ systemPrompt, depth: plan.depth, context: plan.context, answer: undefined, refusals: 0, complaint: undefined },
      isLastCall: false,
      spawns: spawns === undefined || spawns === "*" ? spawns : [...spawns],
      output: output && { ...output },
    });
    // Whether it may start others is known from here on.
    conversation.setActiveTools(tools);
    conversation.log.append({
      type: "session_init",
      systemPrompt,
      task: tracked.task,
      tools,
      ...(output === undefined ? {} : { outputSchema: output }),
      ...(spawns === undefined ? {} : { spawns }),
    });
    this.#ports.opened(conversation, this);
    return conversation;
  }

  /**
   * Those of its definition, else its parent's; never one that the session itself was denied. `task` drops out by itself where
   * it may not spawn.
   */
  #tools(): string[] {
    const { definition, parent, tracked } = this.plan;
    const wanted = definition.tools ?? parent.activeTools ?? parent.toolSchemas().map(({ name }) => name);
    const limit = tracked.root.activeTools;
    const tools = wanted.filter((name) => name !== "yield" && (limit === undefined || limit.includes(name)));
    return definition.output === undefined ? tools : [...tools, "yield"];
  }

  #selection(): Partial<Selection> {
    const { definition, parent, modelOverride } = this.plan;
    const models = this.#ports.ctx.tryUse(Models);
    const selectors = [...(modelOverride === undefined ? [] : [modelOverride]), ...(definition.models ?? [])];
    let chosen: ReturnType<Models["resolve"]>;
    for (const selector of selectors) {
      const found = models?.resolve(selector);
      if (found === undefined || models?.hasKey(found.model.provider) === false) continue;
      chosen = found;
      break;
    }
    const model = chosen?.model ?? parent.selection.model;
    const level = definition.thinkingLevel ?? chosen?.thinkingLevel ?? parent.selection.thinkingLevel;
    return { model, thinkingLevel: model === undefined ? level : (models?.clamp(model, level) ?? level) };
  }

  #checkBudget(conversation: ConversationHandle, budget: AbortController): void {
    const limit = this.#ports.ctx.setting(requestBudget);
    const { requests } = this.progress;
    if (limit === 0 || requests < limit) return;
    if (requests >= limit * 1.5) return budget.abort(new Error(`It was stopped after ${requests} model calls`));
    if (requests !== limit) return;
    const content = `You have used ${requests} model calls. Come to an end now: finish what is open, or say what is left.`;
    const message = { role: "developer" as const, content, timestamp: Date.now(), attribution: "agent" as const };
    conversation.submitCustom(message).catch(() => {});
  }

  #owesAnswer(outcome: RunOutcome): boolean {
    if (this.plan.definition.output === undefined || outcome.status !== "completed") return false;
    return this.#conversation?.slot(Assignment).get().answer === undefined;
  }

  /** What it changed in its own working tree goes back to its parent's, or is kept where the result says. */
  async #closeWorktree(status: "completed" | "failed" | "aborted"): Promise<void> {
    const worktree = this.#worktree;
    if (worktree === undefined) return;
    this.#worktree = undefined;
    const { ctx } = this.#ports;
    const closing = worktree.close({
      ctx,
      merge: status === "completed",
      title: this.plan.tracked.description ?? this.plan.tracked.task,
      keep: (patch) => this.plan.parent.log.artifacts.write(`${this.plan.tracked.id}-patch`, patch),
    });
    // The call of the parent does not wait for git after an abort.
    if (status === "aborted") return this.#ports.behind(closing);
    this.#isolation = await closing;
  }

  #end(status: "completed" | "failed" | "aborted", error: string | undefined): SubagentResult {
    const { registry } = this.#ports;
    const conversation = this.#conversation;
    const begun = conversation !== undefined;
    this.#result = this.#describe(status, error);
    this.progress.end(status);
    this.#frames.close();
    if (begun) registry.progress(this.plan.tracked, this.progress.read());
    registry.ended(this.plan.tracked, status, begun);
    if (begun) recordEnd(this.plan.parent, this.plan.tracked, this.plan.isolated, this.#result, this.#ports.ctx.log);
    this.#changed();
    this.#release();
    if (begun) this.#ports.behind(this.#close(conversation));
    return this.#result;
  }

  async #close(conversation: ConversationHandle): Promise<void> {
    try {
      await this.#ports.ctx.use(Conversations).close(conversation);
    } catch (error) {
      // At shutdown all conversations are closed already.
      this.#ports.ctx.log.debug("A subagent's conversation was not closed", { error: errorMessage(error) });
    } finally {
      this.#ports.closed(conversation);
    }
  }

  #describe(status: "completed" | "failed" | "aborted", error: string | undefined): SubagentResult {
    const { tracked } = this.plan;
    const answer = this.#conversation?.slot(Assignment).get().answer;
    const said = lastText(this.#conversation) || this.progress.said;
    const text = answer === undefined ? said : JSON.stringify(answer.data, undefined, 2);
    const { note, ...isolation } = this.#isolation;
    const whole = note === undefined ? text : `${text}\n\n${note}`.trim();
    const cut = truncateTail(whole, OUTPUT_LIMITS);
    return {
      ...{ index: tracked.index, id: tracked.id, agent: tracked.agent, agentSource: tracked.agentSource, task: tracked.task },
      ...(tracked.assignment === undefined ? {} : { assignment: tracked.assignment }),
      ...(tracked.description === undefined ? {} : { description: tracked.description }),
      exitCode: status === "completed" ? 0 : 1,
      output: cut.content,
      stderr: status === "completed" ? "" : (error ?? ""),
      truncated: cut.truncated,
      durationMs: this.progress.durationMs,
      tokens: this.progress.tokens,
      requests: this.progress.requests,
      ...(this.progress.usage === undefined ? {} : { usage: this.progress.usage }),
      ...(status === "failed" ? { error: error ?? "It failed without a message" } : {}),
      ...(status === "aborted" ? { aborted: true, abortReason: error ?? "Aborted" } : {}),
      ...(cut.truncated ? { outputPath: this.plan.parent.log.artifacts.write(tracked.id, whole) } : {}),
      ...isolation,
      ...(answer === undefined ? {} : { extractedToolData: { yield: answer.data } }),
    };
  }

  #touch(): void {
    this.#frames.touch();
    this.#changed();
  }

  #release(): void {
    if (!this.#holds) return;
    this.#holds = false;
    this.#ports.semaphore.release();
  }
}

/** The last thing it said, however its run ended. */
function lastText(conversation: ConversationHandle | undefined): string {
  const messages = conversation?.messages ?? [];
  for (const message of messages.toReversed()) {
    if (message.role !== "assistant") continue;
    const text = message.content.map((block) => (block.type === "text" ? block.text : "")).join("");
    if (text.trim() !== "") return text.trim();
  }
  return "";
}

function reasonOf(signal: AbortSignal): string {
  return signal.aborted ? errorMessage(signal.reason) : "Aborted";
}

/** The outcome; after an abort it is waited for a bounded time only. */
async function untilUnwound(settled: Promise<RunOutcome>, signal: AbortSignal): Promise<RunOutcome> {
  let timer: NodeJS.Timeout | undefined;
  let stop: () => void = () => {};
  const limit = new Promise<RunOutcome>((resolve) => {
    stop = () => {
      timer = setTimeout(() => resolve({ status: "aborted", messages: [], errorMessage: reasonOf(signal) }), UNWIND_MS);
    };
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
  });
  try {
    return await Promise.race([settled, limit]);
  } finally {
    signal.removeEventListener("abort", stop);
    clearTimeout(timer);
  }
}
