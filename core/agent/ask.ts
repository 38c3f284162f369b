// One request to the model: context, system prompt, tools and credential as they are now, then the stream. Never throws.
import type { AgentMessage } from "../../protocol/message.ts";
import type { Model } from "../../protocol/model.ts";
import { runCall } from "../kernel/attribution.ts";
import type { Context } from "../kernel/context.ts";
import { CommandError, errorMessage, ProviderError } from "../kernel/errors.ts";
import { Models } from "../services/models.ts";
import { betweenUsers } from "../session/repair.ts";
import { emptyAnswer } from "./answer.ts";
import { AnswerWatches, type Interruption } from "./answer-watch.ts";
import { messageStart, messageUpdate } from "./events.ts";
import { answerStarting, contextBuilding, providerRequest } from "./hook-points.ts";
import type { ProviderRequest } from "./provider.ts";
import { askHandlers, type Run } from "./run.ts";
import { maskedFailure, redactFor } from "./secrets.ts";
import { abortReason, type StreamPort, type StreamResult, streamAnswer } from "./stream.ts";
import { TextGuard } from "./text-guard.ts";
import { refusesChoice } from "./tool-choice.ts";
import { untilAborted } from "./until-aborted.ts";

export interface ModelAnswer extends StreamResult {
  /** A watch cut the answer off: the run goes on with its messages. */
  readonly interruption?: Interruption | undefined;
}

/** What a prompt without a model gets (protocol-facts §1.3). */
export const NO_MODEL = `No model selected.

Choose one with set_model, or start with --model provider/id. Models need a credential: set an API key or log in.`;

/**
 * The credential for the run that is about to start; refuses work that cannot reach a model before anything is stored. An abort
 * ends the wait: a command of models.yml may take as long as it likes.
 * @throws {CommandError} when no model is selected. @throws {ProviderError} when there is no credential.
 */
export async function preflight(ctx: Context, model: Model | undefined, signal: AbortSignal): Promise<Run["key"]> {
  if (model === undefined) throw new CommandError(NO_MODEL);
  const models = ctx.tryUse(Models);
  return { model, resolved: models && (await untilAborted(models.key(model), signal, 0)) };
}

/**
 * Asks once; when the service refuses a login that can be renewed, renews it and asks again, and when it refuses to be told which
 * tool to call, asks again without.
 */
export async function askModel(run: Run): Promise<ModelAnswer> {
  const asked: Asked = { toolChoice: undefined };
  let answer = await askOnce(run, asked);
  const { model } = run.conversation.selection;
  if (answer.outcome === "failed" && !answer.started && answer.error?.kind === "auth" && model !== undefined) {
    const renewing = run.ctx.tryUse(Models)?.renew?.(model);
    const renewed = renewing === undefined ? false : await untilAborted(renewing, run.signal, 0);
    if (renewed === true && !run.signal.aborted) answer = await askOnce(run, asked);
  }
  const isRefused = answer.outcome === "failed" && !answer.started && refusesChoice(answer.error, asked.toolChoice);
  return isRefused && !run.signal.aborted ? askOnce(run, asked, "auto") : answer;
}

/** What the last request asked for, known once handlers have seen it. */
interface Asked {
  toolChoice: ProviderRequest["toolChoice"];
}

async function askOnce(run: Run, asked: Asked, toolChoice?: "auto"): Promise<ModelAnswer> {
  const { conversation, signal } = run;
  const { model } = conversation.selection;
  try {
    if (model === undefined) throw new ProviderError(NO_MODEL, "fatal");
    const provider = run.ctx.registry.get("provider", model.api);
    if (provider === undefined)
      throw new ProviderError(`No provider speaks "${model.api}", which ${model.provider}/${model.id} needs`, "fatal");
    const watches = await watchesOf(run);
    const built = await buildRequest(run, watches.signal);
    const request = toolChoice === undefined ? built : { ...built, toolChoice };
    asked.toolChoice = request.toolChoice;
    if (signal.aborted) throw new ProviderError("Aborted", "aborted");
    const release = provider.scope.lease("run");
    try {
      const ctx = run.ctx.derive({ scope: provider.scope, signal: watches.signal });
      const port: StreamPort = {
        model,
        signal: watches.signal,
        now: () => conversation.now(),
        mode: () => conversation.messageUpdates,
        congested: () => conversation.isAttached && conversation.env.congested(),
        onDrain: (listener) => conversation.env.onDrain(listener),
        messageStart: (message) => conversation.emit(messageStart, { message }),
        messageUpdate: (message, event) =>
          conversation.emitRaw({ type: messageUpdate.name, message, assistantMessageEvent: event }),
        redact: redactFor(run.ctx),
        watch: (steps, contentAt) => watches.see(steps, contentAt),
      };
      const call = { scope: provider.scope, locals: { conversation }, invocation: run.ctx.invocation };
      const answer = await runCall(call, () => streamAnswer(port, () => provider.definition.stream(request, ctx)));
      return signal.aborted || watches.interruption === undefined ? answer : cutOff(answer, watches.interruption);
    } finally {
      release();
    }
  } catch (error) {
    return failedAnswer(run, error);
  }
}

function failedAnswer(run: Run, thrown: unknown): ModelAnswer {
  const { conversation, signal } = run;
  const failure = ProviderError.is(thrown) ? thrown : new ProviderError(errorMessage(thrown), "fatal", { cause: thrown });
  const error = maskedFailure(failure, redactFor(run.ctx));
  const outcome = signal.aborted ? "aborted" : "failed";
  const text = signal.aborted ? abortReason(signal) : error.message;
  const message = emptyAnswer(conversation.selection.model, signal.aborted ? "aborted" : "error", {
    errorMessage: text,
    now: conversation.now(),
    error,
  });
  return {
    message,
    started: false,
    outcome,
    error: signal.aborted ? undefined : error,
    broken: new Map(),
    isEmpty: true,
    isThinkingOnly: true,
  };
}

async function watchesOf(run: Run): Promise<AnswerWatches> {
  const { conversation, ctx, signal } = run;
  const given = ctx.hasHooks(answerStarting) ? await askHandlers(run, answerStarting, { conversation, watches: [] }) : undefined;
  const watches = [...(given?.watches ?? []), new TextGuard(() => conversation.now())];
  return new AnswerWatches(watches, signal, (error) => ctx.reportError("mortise", answerStarting.name, error));
}

/** Calls of an answer that was cut off do not run, so it holds none. */
function cutOff(answer: StreamResult, interruption: Interruption): ModelAnswer {
  const content = answer.message.content.filter((block) => block.type !== "toolCall");
  return { ...answer, message: { ...answer.message, content }, interruption };
}

async function buildRequest(run: Run, signal: AbortSignal): Promise<ProviderRequest> {
  const { conversation, ctx } = run;
  const { model, thinkingLevel } = conversation.selection;
  if (model === undefined) throw new ProviderError(NO_MODEL, "fatal");
  let messages: readonly AgentMessage[] = conversation.messages;
  if (ctx.hasHooks(contextBuilding)) {
    messages = (await askHandlers(run, contextBuilding, { conversation, messages: [...messages] }))?.messages ?? messages;
  }
  await conversation.providerView.prepare(messages);
  const systemPrompt = run.systemPrompt ?? (await conversation.systemPrompt());
  const models = ctx.tryUse(Models);
  // An extension may have chosen another model since the work was accepted: its key is another one.
  const known = run.key?.model === model ? run.key : undefined;
  run.key = undefined;
  const key = known === undefined ? models && (await untilAborted(models.key(model), signal, 0)) : known.resolved;
  const request: ProviderRequest = {
    model,
    systemPrompt,
    messages: betweenUsers(conversation.providerView.repair(messages)),
    tools: model.supportsTools === false ? [] : conversation.toolSchemas(),
    thinkingLevel: models?.clamp(model, thinkingLevel) ?? thinkingLevel,
    signal,
    apiKey: key?.apiKey,
    headers: key?.headers,
    sessionId: conversation.id,
  };
  if (!ctx.hasHooks(providerRequest)) return request;
  return (await askHandlers(run, providerRequest, { conversation, request }))?.request ?? request;
}
