// The turn loop: agent_start … agent_end for one piece of accepted work. A turn is one answer of the model and the tools it
// calls. The loop never throws at its caller: failures are events and an outcome. Queues are read between turns only, and never
// once the run is aborted, so a message is either delivered or still queued.
import type { ToolCall } from "../../protocol/content.ts";
import type { AgentMessage, AssistantMessage, DeveloperMessage, ToolResultMessage } from "../../protocol/message.ts";
import { errorMessage, ProviderError } from "../kernel/errors.ts";
import { emptyAnswer } from "./answer.ts";
import type { Interruption } from "./answer-watch.ts";
import { askModel, type ModelAnswer } from "./ask.ts";
import type { RunOutcome, RunStatus } from "./conversation-types.ts";
import { agentStart, notice, turnEnd, turnStart } from "./events.ts";
import { beforeAgentStart, contextOverflow, runEnded, runStarting, turnEnded, turnFailed } from "./hook-points.ts";
import { LoopGuard } from "./loop-guard.ts";
import { askHandlers, type Run } from "./run.ts";
import { abortReason } from "./stream.ts";
import { REPEATED_TEXT } from "./text-guard.ts";
import { closeToolCalls, runToolCalls } from "./tool-calls.ts";

/** Empty answers asked again before the failure is shown (agent-semantics §2.5). */
const MAX_EMPTY = 3;
/** Answers of nothing but reasoning, one after another. */
const MAX_THINKING_ONLY = 3;
/** Answers in a row that are cut off because they repeat themselves. */
const MAX_REPEATED = 2;
/** An empty answer to a context that takes this share of the window was not meant. */
const FULL_WINDOW = 0.99;
/** Overflows in a row that `contextOverflow` may answer; the next one ends the run. */
const MAX_OVERFLOWS = 3;

/** Runs until the model has nothing more to do. The caller emits agent_end. */
export async function runAgent(run: Run): Promise<RunOutcome> {
  const guard = new LoopGuard();
  const counts: Counts = { failures: 0, overflows: 0, empty: 0, thinkingOnly: 0, repeated: 0 };
  try {
    let incoming = await plan(run);
    run.conversation.emit(agentStart, {});
    for (;;) {
      const end = await turn(run, incoming, guard, counts);
      if (end.kind === "next") {
        incoming = end.messages;
        continue;
      }
      const more = await finish(run, end.status);
      if (more.length === 0) return outcome(run, end.status, end.errorMessage);
      incoming = more;
    }
  } catch (error) {
    // A bug of ours, or a log that refuses a message: the host still gets a well-formed end.
    run.ctx.reportError("mortise", "run", error);
    const text = errorMessage(error);
    run.produced.push(
      emptyAnswer(run.conversation.selection.model, "error", { errorMessage: text, now: run.conversation.now() }),
    );
    return outcome(run, "error", text);
  }
}

interface Counts {
  failures: number;
  overflows: number;
  empty: number;
  thinkingOnly: number;
  repeated: number;
}

type TurnResult =
  | { kind: "next"; messages: readonly AgentMessage[] }
  | { kind: "end"; status: RunStatus; errorMessage?: string | undefined };

function outcome(run: Run, status: RunStatus, text?: string): RunOutcome {
  return { status, messages: run.produced, ...(text === undefined ? {} : { errorMessage: text }) };
}

/** The messages of the first turn: waiting custom messages, the prompt, what extensions add, steering that is queued. */
async function plan(run: Run): Promise<readonly AgentMessage[]> {
  const { conversation, ctx, prompts, signal } = run;
  if (ctx.hasHooks(runStarting)) await askHandlers(run, runStarting, { conversation, prompts, signal });
  let extra: readonly AgentMessage[] = [];
  if (ctx.hasHooks(beforeAgentStart)) {
    const systemPrompt = await conversation.systemPrompt();
    const value = { conversation, prompt: run.prompts.at(-1), systemPrompt, extraMessages: [] };
    const planned = await askHandlers(run, beforeAgentStart, value);
    extra = planned?.extraMessages ?? [];
    if (planned !== undefined && planned.systemPrompt !== systemPrompt) run.systemPrompt = planned.systemPrompt;
  }
  const prelude = run.prompts.length > 0 ? conversation.inbox.takeNextTurn() : [];
  const steering = run.signal.aborted ? [] : conversation.inbox.takeSteering();
  const messages = [...prelude, ...run.prompts, ...extra, ...steering];
  // Woken by a follow-up alone: nothing else would bring it in.
  return messages.length > 0 || run.signal.aborted ? messages : conversation.inbox.takeFollowUps();
}

async function turn(run: Run, incoming: readonly AgentMessage[], guard: LoopGuard, counts: Counts): Promise<TurnResult> {
  const { conversation, signal } = run;
  conversation.flushRecords();
  conversation.emit(turnStart, {});
  for (const message of incoming) add(run, message);
  const answer = signal.aborted ? abortedBeforehand(run) : await askUntilSaid(run, counts);
  tellAnswer(run, answer);
  if (answer.interruption !== undefined) return interruptedTurn(run, answer.message, answer.interruption, counts);
  const calls = answer.message.content.filter((block) => block.type === "toolCall");
  if (answer.outcome !== "done") return failedTurn(run, answer, calls, counts);
  counts.failures = 0;
  counts.overflows = 0;
  counts.repeated = 0;
  const port = batchPort(run);
  const none = { results: [], endsRun: false };
  const { results, endsRun } = calls.length === 0 ? none : await runToolCalls(port, calls, answer.broken);
  await endTurn(run, answer.message, results, calls.length > 0 && !endsRun);
  if (signal.aborted)
    return calls.length > 0 ? closingTurn(run) : { kind: "end", status: "aborted", errorMessage: abortReason(signal) };
  if (calls.length > 0) {
    counts.thinkingOnly = 0;
    if (endsRun) return queuedOrEnd(run);
    const correction = guard.check(calls);
    return {
      kind: "next",
      messages: [...conversation.inbox.takeSteering(), ...(correction === undefined ? [] : [developer(run, correction)])],
    };
  }
  return textTurn(run, answer, counts);
}

/** A watch cut the answer off. The run goes on, so this is no abort. */
async function interruptedTurn(
  run: Run,
  message: AssistantMessage,
  interruption: Interruption,
  counts: Counts,
): Promise<TurnResult> {
  const { conversation, signal } = run;
  if (!interruption.keep) conversation.dropFromContext(message);
  const isLoop = interruption.reason === REPEATED_TEXT && ++counts.repeated > MAX_REPEATED;
  await endTurn(run, message, [], !isLoop);
  if (signal.aborted) return closingTurn(run);
  if (isLoop) {
    const text = `The model repeated itself in ${counts.repeated} answers in a row`;
    conversation.emit(notice, { level: "error", message: text, source: "agent" });
    return { kind: "end", status: "error", errorMessage: text };
  }
  return { kind: "next", messages: [...interruption.messages, ...conversation.inbox.takeSteering()] };
}

/** After an answer without calls: one of reasoning alone, the output limit, then the queues, else the end. */
async function textTurn(run: Run, answer: ModelAnswer, counts: Counts): Promise<TurnResult> {
  if (answer.isThinkingOnly) return thinkingOnlyTurn(run, answer, counts);
  counts.thinkingOnly = 0;
  if (answer.message.stopReason === "length") {
    const recovered = await recoverFromLimit(run, answer, counts);
    if (recovered !== undefined) return recovered;
  }
  if (run.signal.aborted) return { kind: "end", status: "aborted", errorMessage: abortReason(run.signal) };
  return queuedOrEnd(run);
}

/** The model has nothing more to do: what is queued goes on, else the run is complete. */
function queuedOrEnd({ conversation }: Run): TurnResult {
  const steering = conversation.inbox.takeSteering();
  const next = steering.length > 0 ? steering : conversation.inbox.takeFollowUps();
  return next.length > 0 ? { kind: "next", messages: next } : { kind: "end", status: "completed" };
}

/** Nobody sees reasoning: without an answer the run would seem to end in silence, at the output limit as without. */
function thinkingOnlyTurn(run: Run, { message }: ModelAnswer, counts: Counts): TurnResult {
  const { conversation, signal } = run;
  const isCut = message.stopReason === "length";
  if (++counts.thinkingOnly > MAX_THINKING_ONLY) {
    const what = isCut ? "used up its output limit on reasoning" : "gave nothing but reasoning";
    const text = `The model ${what} ${counts.thinkingOnly} times in a row`;
    conversation.emit(notice, { level: "error", message: text, source: "agent" });
    return { kind: "end", status: "error", errorMessage: text };
  }
  if (signal.aborted) return { kind: "end", status: "aborted", errorMessage: abortReason(signal) };
  const text = isCut
    ? "Your reasoning used up the whole output limit and was discarded. Think briefly, then answer or call a tool."
    : "Your answer was reasoning alone, which nobody but you sees. Answer, or call a tool.";
  return { kind: "next", messages: [developer(run, text), ...conversation.inbox.takeSteering()] };
}

/** The answer hit the output limit and calls nothing (agent-semantics §2.5). */
async function recoverFromLimit(run: Run, answer: ModelAnswer, counts: Counts): Promise<TurnResult | undefined> {
  const { conversation, ctx, signal } = run;
  if (!ctx.hasHooks(contextOverflow) || counts.overflows >= MAX_OVERFLOWS) return undefined;
  const value = { conversation, reason: "incomplete" as const, message: answer.message, error: undefined, signal };
  const again = await askHandlers(run, contextOverflow, value);
  if (again?.continue !== true || signal.aborted) return undefined;
  counts.overflows++;
  return { kind: "next", messages: conversation.inbox.takeSteering() };
}

/** An answer that failed or was aborted: its calls get results, then retry, recovery or the end. */
async function failedTurn(run: Run, answer: ModelAnswer, calls: readonly ToolCall[], counts: Counts): Promise<TurnResult> {
  const { signal } = run;
  const aborted = answer.outcome === "aborted" || signal.aborted;
  const text = answer.message.errorMessage ?? abortReason(signal);
  const results =
    calls.length === 0
      ? []
      : closeToolCalls(batchPort(run), calls, `Tool execution was aborted: ${text}`, aborted ? "aborted" : "error");
  await endTurn(run, answer.message, results, false);
  if (aborted || signal.aborted) return { kind: "end", status: "aborted", errorMessage: text };
  counts.failures++;
  const error = answer.error ?? new ProviderError(text, "fatal");
  const again =
    error.kind === "overflow"
      ? await makeRoom(run, answer, error, counts)
      : await retry(run, answer, error, calls.length === 0, counts);
  if (signal.aborted) return { kind: "end", status: "aborted", errorMessage: abortReason(signal) };
  if (!again) return { kind: "end", status: "error", errorMessage: text };
  return { kind: "next", messages: [] };
}

async function makeRoom(run: Run, answer: ModelAnswer, error: ProviderError, counts: Counts): Promise<boolean> {
  const { conversation, ctx, signal } = run;
  if (!ctx.hasHooks(contextOverflow) || ++counts.overflows > MAX_OVERFLOWS) return false;
  conversation.dropFromContext(answer.message);
  const value = { conversation, reason: "overflow" as const, message: answer.message, error, signal };
  return (await askHandlers(run, contextOverflow, value))?.continue === true;
}

async function retry(run: Run, answer: ModelAnswer, error: ProviderError, canRetry: boolean, counts: Counts): Promise<boolean> {
  const { conversation, ctx, signal } = run;
  if (!ctx.hasHooks(turnFailed)) return false;
  const value = { conversation, message: answer.message, error, attempt: counts.failures, canRetry, signal };
  const retried = (await askHandlers(run, turnFailed, value))?.retry;
  if (retried === undefined || !canRetry || signal.aborted) return false;
  conversation.dropFromContext(answer.message);
  return retried.delayMs <= 0 || (await conversation.waitForRetry(retried.delayMs, signal));
}

/** Handlers may queue more work here; whatever waits then continues a run that completed. */
async function finish(run: Run, status: RunStatus): Promise<readonly AgentMessage[]> {
  const { conversation, ctx, signal } = run;
  conversation.flushRecords();
  if (ctx.hasHooks(runEnded)) await askHandlers(run, runEnded, { conversation, status, messages: run.produced, signal });
  if (status !== "completed" || signal.aborted) return [];
  const steering = conversation.inbox.takeSteering();
  return steering.length > 0 ? steering : conversation.inbox.takeFollowUps();
}

/** Asks the model; an answer without anything in it is asked again, unseen by the host. */
async function askUntilSaid(run: Run, counts: Counts): Promise<ModelAnswer> {
  for (;;) {
    const answer = await askModel(run);
    if (answer.outcome !== "done" || !answer.isEmpty || answer.broken.size > 0) {
      counts.empty = 0;
      return answer;
    }
    const overflow = silentOverflow(run, answer.message);
    if (overflow !== undefined || ++counts.empty > MAX_EMPTY || answer.started) {
      const text = `The model returned an empty answer ${counts.empty} times in a row`;
      counts.empty = 0;
      return failed(answer, overflow ?? new ProviderError(text, "fatal"));
    }
    if (run.signal.aborted) return abortedBeforehand(run);
  }
}

function failed(answer: ModelAnswer, error: ProviderError): ModelAnswer {
  const message = { ...answer.message, stopReason: "error" as const, errorMessage: error.message };
  return { ...answer, outcome: "failed", error, message };
}

/** Some services take a context that fills their window, or cut it, and answer nothing (agent-semantics §2.10). */
function silentOverflow(run: Run, { usage, model: id }: AssistantMessage): ProviderError | undefined {
  const { model } = run.conversation.selection;
  const window = model?.id === id ? (model.contextWindow ?? 0) : 0;
  const input = usage.input + usage.cacheRead + usage.cacheWrite;
  if (window <= 1 || input < window * FULL_WINDOW) return undefined;
  return new ProviderError(`Nothing was answered to ${input} tokens, and the window of the model is ${window}`, "overflow");
}

/** Every aborted run ends in an assistant message that says so, even if the model was never asked. */
function abortedBeforehand(run: Run): ModelAnswer {
  const text = abortReason(run.signal);
  const message = emptyAnswer(run.conversation.selection.model, "aborted", { errorMessage: text, now: run.conversation.now() });
  return {
    message,
    started: false,
    outcome: "aborted",
    error: undefined,
    broken: new Map(),
    isEmpty: true,
    isThinkingOnly: true,
  };
}

/** The turn after tools were aborted: no request, only the message that ends the run. */
async function closingTurn(run: Run): Promise<TurnResult> {
  const answer = abortedBeforehand(run);
  run.conversation.emit(turnStart, {});
  tellAnswer(run, answer);
  await endTurn(run, answer.message, [], false);
  return { kind: "end", status: "aborted", errorMessage: answer.message.errorMessage };
}

async function endTurn(run: Run, message: AssistantMessage, toolResults: ToolResultMessage[], continues: boolean): Promise<void> {
  const { conversation, ctx, signal } = run;
  conversation.emit(turnEnd, { message, toolResults });
  conversation.flushRecords();
  if (ctx.hasHooks(turnEnded)) await askHandlers(run, turnEnded, { conversation, message, toolResults, continues, signal });
}

function tellAnswer(run: Run, answer: ModelAnswer): void {
  run.produced.push(answer.message);
  run.conversation.store(answer.message, { started: answer.started });
}

function add(run: Run, message: AgentMessage): void {
  run.produced.push(message);
  run.conversation.store(message);
}

function developer(run: Run, text: string): DeveloperMessage {
  return { role: "developer", content: [{ type: "text", text }], timestamp: run.conversation.now(), attribution: "agent" };
}

function batchPort(run: Run) {
  const { conversation, ctx, signal } = run;
  return {
    ctx,
    conversation,
    signal,
    queue: conversation.inbox,
    find: (name: string) => conversation.tools.get(name),
    now: () => conversation.now(),
    store: (message: ToolResultMessage) => add(run, message),
  };
}
