// One request to the model beside the conversation: a summary, a title, a hand-over. Nothing of it is stored or streamed to the
// host; provider, credential and prices are those of any other request.
import type { AgentMessage, AssistantMessage } from "../../protocol/message.ts";
import type { Model, ThinkingLevel } from "../../protocol/model.ts";
import type { Context } from "../kernel/context.ts";
import { ProviderError } from "../kernel/errors.ts";
import { Models } from "../services/models.ts";
import { betweenUsers, cleanText, ProviderView } from "../session/repair.ts";
import type { ToolChoice, ToolSchema } from "./provider.ts";
import { redactFor } from "./secrets.ts";
import { streamAnswer } from "./stream.ts";
import { refusesChoice } from "./tool-choice.ts";
import { untilAborted } from "./until-aborted.ts";

export interface SideRequest {
  readonly model: Model;
  readonly systemPrompt: readonly string[];
  readonly messages: readonly AgentMessage[];
  /** Offered for the sake of a cached prefix; the model may not call them with `toolChoice` none. */
  readonly tools?: readonly ToolSchema[] | undefined;
  readonly toolChoice?: ToolChoice | undefined;
  /** Upper bound of output tokens; the model's own limit holds as well. */
  readonly maxTokens?: number | undefined;
  /** Defaults to off, clamped to what the model can do. */
  readonly thinkingLevel?: ThinkingLevel | undefined;
  readonly signal: AbortSignal;
  readonly sessionId?: string | undefined;
}

export interface SideAnswer {
  /** Text blocks joined and trimmed; may be empty. */
  readonly text: string;
  /** With usage and cost. */
  readonly message: AssistantMessage;
}

/** @throws {ProviderError} what went wrong; kind `aborted` once `signal` is aborted. */
export async function sideRequest(ctx: Context, request: SideRequest): Promise<SideAnswer> {
  const { model, signal } = request;
  const provider = ctx.registry.get("provider", model.api);
  if (provider === undefined)
    throw new ProviderError(`No provider speaks "${model.api}", which ${model.provider}/${model.id} needs`, "fatal");
  const models = ctx.tryUse(Models);
  const key = models && (await untilAborted(models.key(model), signal, 0));
  if (signal.aborted) throw new ProviderError("Aborted", "aborted");
  const wanted = request.thinkingLevel ?? "off";
  const view = new ProviderView();
  await view.prepare(request.messages);
  const sent = {
    model,
    systemPrompt: request.systemPrompt.map(cleanText),
    messages: betweenUsers(view.repair(request.messages)),
    tools: model.supportsTools === false ? [] : (request.tools ?? []),
    thinkingLevel: models?.clamp(model, wanted) ?? wanted,
    signal,
    apiKey: key?.apiKey,
    headers: key?.headers,
    maxTokens: request.maxTokens === undefined ? undefined : Math.min(request.maxTokens, model.maxTokens || request.maxTokens),
    toolChoice: request.toolChoice,
    sessionId: request.sessionId,
  };
  const release = provider.scope.lease("run");
  try {
    const own = ctx.derive({ scope: provider.scope, signal });
    const { message, outcome, error } = await streamAnswer({ ...silentPort(model, signal), redact: redactFor(ctx) }, () =>
      provider.definition.stream(sent, own),
    );
    if (outcome === "aborted") throw new ProviderError("Aborted", "aborted");
    if (outcome === "failed" && refusesChoice(error, request.toolChoice))
      return sideRequest(ctx, { ...request, toolChoice: "auto" });
    if (outcome === "failed") throw error ?? new ProviderError(message.errorMessage ?? "The model service failed", "fatal");
    return { text: textOf(message), message };
  } finally {
    release();
  }
}

function silentPort(model: Model, signal: AbortSignal): Parameters<typeof streamAnswer>[0] {
  return {
    model,
    signal,
    now: Date.now,
    mode: () => "delta",
    congested: () => false,
    onDrain: () => () => {},
    messageStart: () => {},
    messageUpdate: () => {},
  };
}

function textOf(message: AssistantMessage): string {
  return message.content
    .flatMap((block) => (block.type === "text" ? [block.text] : []))
    .join("\n")
    .trim();
}
