// A provider whose replies are scripted in the test. It records requests and refuses what strict services refuse, so that a
// test cannot pass with a request that would fail in the field.

import type { AssistantContent } from "../../protocol/content.ts";
import type { Model } from "../../protocol/model.ts";
import {
  type Context,
  defineProvider,
  type ModelMessage,
  type ProviderDefinition,
  ProviderError,
  type ProviderEvent,
  type ProviderRequest,
} from "../extension.ts";

/** Holds a stream open until it is opened. */
export class Gate {
  readonly passed: Promise<void>;
  open: () => void = () => {};
  constructor() {
    this.passed = new Promise((resolve) => {
      this.open = resolve;
    });
  }
}

/** One step of a reply: an event, a gate to wait at, or a function that runs at that point (it may return a promise). */
export type ReplyStep = ProviderEvent | Gate | (() => unknown);
export type Reply = readonly ReplyStep[];
/** A reply, or how to make one from the request and its number (from 0). */
export type Script = Reply | ((request: ProviderRequest, turn: number) => Reply | AsyncIterable<ProviderEvent>);

/** The model of a scripted provider: `--model scripted/scripted`. */
export const scriptedModel: Model = {
  id: "scripted",
  name: "Scripted",
  api: "scripted",
  provider: "scripted",
  baseUrl: "http://127.0.0.1",
  reasoning: true,
  input: ["text", "image"],
  cost: { input: 1, output: 2, cacheRead: 0.1, cacheWrite: 1.25 },
  contextWindow: 100_000,
  maxTokens: 8_000,
};

export const done = (stopReason: "stop" | "length" | "toolUse" = "stop"): ProviderEvent => ({ type: "done", stopReason });
export const usage = (input: number, output: number): ProviderEvent => ({ type: "usage", usage: { input, output } });
export const fail = (message: string, kind: ProviderError["kind"] = "retryable"): ProviderEvent => ({
  type: "error",
  error: new ProviderError(message, kind),
});

/** A whole text answer, in as many deltas as there are arguments. */
export function says(...deltas: string[]): Reply {
  return [
    { type: "start" },
    { type: "text_start", index: 0 },
    ...deltas.map((delta): ProviderEvent => ({ type: "text_delta", index: 0, delta })),
    { type: "text_end", index: 0 },
    usage(10, 5),
    done(),
  ];
}

/** An answer that calls tools. */
export function calls(...list: { id: string; name: string; args?: Record<string, unknown> }[]): Reply {
  return [
    { type: "start" },
    ...list.flatMap(({ id, name, args = {} }, index): ProviderEvent[] => [
      { type: "toolcall_start", index, id, name },
      { type: "toolcall_delta", index, delta: JSON.stringify(args) },
      { type: "toolcall_end", index },
    ]),
    usage(10, 5),
    done("toolUse"),
  ];
}

export interface ScriptedProvider {
  readonly definition: ProviderDefinition;
  /** What was asked, in order. */
  readonly requests: ProviderRequest[];
  /** Requests that a strict service would have refused, with the reason. */
  readonly refused: string[];
  /** Streams whose signal aborted before their end. */
  aborted: number;
  /** Adds replies; the last one repeats only when it is a function. */
  push(...replies: Script[]): void;
}

/**
 * Makes a model service that plays `script`: give its `definition` to `startDaemon({ extensions })` and choose the model
 * `scripted/scripted`. What it was asked stands in `requests`.
 */
export function scriptedProvider(...script: Script[]): ScriptedProvider {
  const replies = [...script];
  const provider: ScriptedProvider = {
    requests: [],
    refused: [],
    aborted: 0,
    push: (...more) => void replies.push(...more),
    definition: defineProvider({
      name: "scripted",
      summary: "Plays replies of a test",
      needsKey: false,
      models: [scriptedModel],
      stream: (request: ProviderRequest, _ctx: Context) => play(provider, replies, request),
    }),
  };
  return provider;
}

async function* play(provider: ScriptedProvider, replies: Script[], request: ProviderRequest): AsyncGenerator<ProviderEvent> {
  const turn = provider.requests.push({ ...request, messages: [...request.messages] }) - 1;
  const complaint = whyRefused(request.messages);
  if (complaint !== undefined) {
    provider.refused.push(complaint);
    yield { type: "error", error: new ProviderError(`400 ${complaint}`, "fatal", { status: 400 }) };
    return;
  }
  const next = replies[0];
  if (next === undefined) {
    yield { type: "error", error: new ProviderError(`The script has no reply for request ${turn}`, "fatal") };
    return;
  }
  if (typeof next !== "function" || replies.length > 1) replies.shift();
  const reply = typeof next === "function" ? next(request, turn) : next;
  if (Symbol.asyncIterator in reply) {
    yield* reply;
    return;
  }
  for (const step of reply) {
    if (step instanceof Gate) await Promise.race([step.passed, whenAborted(request.signal)]);
    else if (typeof step === "function") await step();
    else yield step;
    if (request.signal.aborted) {
      provider.aborted++;
      yield { type: "error", error: new ProviderError("Request was aborted", "aborted") };
      return;
    }
  }
}

function whenAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

/** The rules of the strict services: pairing, non-empty content, well-formed text. Undefined when the request is fine. */
export function whyRefused(messages: readonly ModelMessage[]): string | undefined {
  if (messages.length === 0) return "messages: at least one message is required";
  if (messages[0]?.role !== "user") return "messages: the first message must be of the user";
  const seen = new Set<string>();
  let open: string[] = [];
  for (const [index, message] of messages.entries()) {
    if (open.length > 0 && message.role !== "toolResult")
      return `messages.${index}: tool calls without result: ${open.join(", ")}`;
    if (/\p{Surrogate}/u.test(JSON.stringify(message).replace(/\\u(d[89ab]..)/gi, "\ud800")))
      return `messages.${index}: lone surrogate`;
    if (message.role === "toolResult") {
      if (!open.includes(message.toolCallId)) return `messages.${index}: result without call: ${message.toolCallId}`;
      open = open.filter((id) => id !== message.toolCallId);
      if (message.isError && message.content.every((block) => block.type === "text" && block.text.trim() === "")) {
        return `messages.${index}: content of an error result is empty`;
      }
      continue;
    }
    if (message.content.length === 0) return `messages.${index}: content is empty`;
    if (typeof message.content !== "string") {
      const blank = message.content.findIndex((block) => block.type === "text" && block.text.trim() === "");
      if (blank >= 0) return `messages.${index}.content.${blank}: text is empty`;
    }
    if (message.role === "assistant") {
      const ids = callIds(message.content);
      const repeated = ids.find((id) => seen.has(id));
      if (repeated !== undefined) return `messages.${index}: call id used before: ${repeated}`;
      for (const id of ids) seen.add(id);
      open = ids;
    }
  }
  return open.length > 0 ? `tool calls without result: ${open.join(", ")}` : undefined;
}

function callIds(content: readonly AssistantContent[]): string[] {
  return content.filter((block) => block.type === "toolCall").map((block) => block.id);
}
