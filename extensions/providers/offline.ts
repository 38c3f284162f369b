// Models without a network, for demonstrations, tests and authors of extensions.
import {
  type Context,
  defineProvider,
  defineService,
  defineSetting,
  errorMessage,
  isAbort,
  Launch,
  type ModelMessage,
  ProviderError,
  type ProviderEvent,
  type ProviderRequest,
  z,
} from "mortise/extension";
import { offlineModels } from "./_offline-models.ts";
import { createOfflineScripts, OfflineScripts, type ScriptReply } from "./_offline-script.ts";
import { Breather, pause } from "./_pace.ts";

const delaySetting = defineSetting({
  name: "providers.offline.delayMs",
  summary: "Milliseconds the offline models wait before every delta",
  schema: z.number().nonnegative(),
  default: 0,
});

const provider = defineProvider({
  name: "offline",
  summary: "Answers without a network: offline/echo repeats the last user text, offline/script plays a file",
  needsKey: false,
  models: offlineModels,
  async *stream(request, ctx) {
    try {
      const delayMs = ctx.setting(delaySetting);
      const reply = request.model.id === "script" ? await scripted(request, ctx) : echo(request);
      yield* play({ delayMs, ...reply }, request);
    } catch (error) {
      yield { type: "error", error: fault(error, request.signal) };
    }
  },
});

export default [provider, delaySetting, defineService(OfflineScripts, { create: createOfflineScripts })];

function fault(error: unknown, signal: AbortSignal): ProviderError {
  if (signal.aborted || isAbort(error, signal)) return new ProviderError("Request was aborted", "aborted");
  return ProviderError.is(error) ? error : new ProviderError(errorMessage(error), "fatal", { cause: error });
}

async function scripted(request: ProviderRequest, ctx: Context): Promise<ScriptReply> {
  const launch = ctx.tryUse(Launch);
  return ctx.use(OfflineScripts).next(request.sessionId ?? "", launch?.env ?? process.env, launch?.cwd ?? process.cwd());
}

/** The user's text again with the calls its lines ask for; after tool results, a text that quotes them. */
function echo(request: ProviderRequest): ScriptReply {
  const results: string[] = [];
  for (const message of request.messages.toReversed()) {
    if (message.role === "toolResult") results.unshift(`${message.toolName} answered: ${quote(textOf(message))}`);
    else if (message.role === "assistant") break;
    else return results.length > 0 ? withDelay(results.join("\n"), lastUserText(request)) : answerTo(textOf(message));
  }
  if (results.length === 0) return { text: "There is nothing to repeat" };
  return withDelay(results.join("\n"), lastUserText(request));
}

function answerTo(text: string): ScriptReply {
  const toolCalls: NonNullable<ScriptReply["toolCalls"]> = [];
  for (const line of text.split("\n")) {
    const match = /^\s*call\s+([\w.-]+)(?:\s+(\{.*\}))?\s*$/.exec(line);
    const args = match && parseObject(match[2] ?? "{}");
    if (match?.[1] && args) toolCalls.push({ name: match[1], arguments: args });
  }
  return { ...withDelay(text, text), toolCalls };
}

function withDelay(text: string, asked: string): ScriptReply {
  const delay = /^\s*delay\s+(\d{1,6})\s*$/m.exec(asked)?.[1];
  return delay === undefined ? { text } : { text, delayMs: Number(delay) };
}

function parseObject(json: string): Record<string, unknown> | undefined {
  try {
    const value = z.record(z.string(), z.unknown()).safeParse(JSON.parse(json));
    return value.success ? value.data : undefined;
  } catch {
    // Not JSON: the line is ordinary text.
    return undefined;
  }
}

function lastUserText(request: ProviderRequest): string {
  const message = request.messages.findLast((candidate) => candidate.role === "user");
  return message === undefined ? "" : textOf(message);
}

function textOf(message: ModelMessage): string {
  if (typeof message.content === "string") return message.content;
  return message.content
    .map((block) => {
      if (block.type === "text") return block.text;
      return block.type === "image" ? `[${block.mimeType}, ${Math.floor(block.data.length * 0.75)} bytes]` : "";
    })
    .filter((text) => text !== "")
    .join("\n");
}

/** 2,000 characters: enough to recognise a result, short enough for a reply. */
function quote(text: string): string {
  return text.length <= 2000 ? text : `${text.slice(0, 2000).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

function* pieces(text: string, chunk: number | undefined): Generator<string> {
  const pattern = chunk === undefined ? /\s*\S+|\s+/gu : new RegExp(`[^]{1,${chunk}}`, "gu");
  for (const match of text.matchAll(pattern)) yield match[0];
}

async function* play(reply: ScriptReply, request: ProviderRequest): AsyncGenerator<ProviderEvent> {
  const breather = new Breather();
  const { signal } = request;
  const delayMs = reply.delayMs ?? 0;
  signal.throwIfAborted();
  const turn = request.messages.filter((message) => message.role === "assistant").length + 1;
  yield { type: "start", responseId: `offline_${turn}` };
  let index = 0;
  let characters = 0;
  for (const kind of ["thinking", "text"] as const) {
    const text = reply[kind];
    if (!text || (kind === "thinking" && request.thinkingLevel === "off")) continue;
    yield { type: `${kind}_start`, index };
    for (const delta of pieces(text, reply.chunk)) {
      if (delayMs > 0) await pause(delayMs, signal);
      else await breather.breathe(signal);
      signal.throwIfAborted();
      characters += delta.length;
      yield { type: `${kind}_delta`, index, delta };
    }
    yield { type: `${kind}_end`, index };
    index++;
  }
  const calls = reply.toolCalls ?? [];
  for (const [place, call] of calls.entries()) {
    if (delayMs > 0) await pause(delayMs, signal);
    const json = JSON.stringify(call.arguments);
    const delta = call.incomplete ? json.slice(0, Math.ceil(json.length / 2)) : json;
    characters += delta.length;
    yield { type: "toolcall_start", index, id: call.id ?? `offline_${turn}_${place + 1}`, name: call.name };
    yield { type: "toolcall_delta", index, delta };
    if (!call.incomplete) yield { type: "toolcall_end", index, arguments: call.arguments };
    index++;
  }
  signal.throwIfAborted();
  if (reply.error) {
    const { message, kind, status, retryAfterMs } = reply.error;
    throw new ProviderError(message, kind, { status, retryAfterMs });
  }
  // Four characters a token: the estimate used everywhere else when a service does not count.
  yield {
    type: "usage",
    usage: { input: Math.ceil(requestLength(request) / 4), output: Math.ceil(characters / 4), cacheRead: 0, cacheWrite: 0 },
  };
  yield { type: "done", stopReason: reply.stop ?? (calls.length > 0 ? "toolUse" : "stop") };
}

function requestLength(request: ProviderRequest): number {
  let length = 0;
  for (const block of request.systemPrompt) length += block.length;
  for (const message of request.messages) {
    if (typeof message.content === "string") length += message.content.length;
    else {
      for (const block of message.content) {
        if (block.type === "text") length += block.text.length;
        else if (block.type === "thinking") length += block.thinking.length;
      }
    }
  }
  return length;
}
