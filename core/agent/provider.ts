// The contract between the turn loop and model services. A provider turns one request into a stream of events and never
// throws: a failure is the last event.
import type { AssistantMessage, ToolResultMessage, Usage, UserMessage } from "../../protocol/message.ts";
import type { Model, ThinkingLevel } from "../../protocol/model.ts";
import type { Context } from "../kernel/context.ts";
import { type Definition, define } from "../kernel/definition.ts";
import type { ProviderError } from "../kernel/errors.ts";

/** What reaches a provider: user, assistant and tool-result messages only, paired and free of lone surrogates. */
export type ModelMessage = UserMessage | AssistantMessage | ToolResultMessage;

/** A tool as the model sees it. */
export interface ToolSchema {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of an object. */
  readonly parameters: Record<string, unknown>;
}

/**
 * Which tools the answer may call: any (`auto`), none, at least one (`required`), or the one that is named. The last two are a
 * wish: where the service knows no such choice, or not beside what else is asked for, the provider leaves the choice to the model.
 */
export type ToolChoice = "auto" | "none" | "required" | { readonly tool: string };

export interface ProviderRequest {
  readonly model: Model;
  /** Blocks in order; the first ones are stable across turns so that caches hold. */
  readonly systemPrompt: readonly string[];
  readonly messages: readonly ModelMessage[];
  readonly tools: readonly ToolSchema[];
  readonly thinkingLevel: ThinkingLevel;
  readonly signal: AbortSignal;
  /** Resolved per request; absent for keyless providers. */
  readonly apiKey?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Upper bound of output tokens; defaults to the model's. */
  readonly maxTokens?: number | undefined;
  /** Defaults to `auto`. */
  readonly toolChoice?: ToolChoice | undefined;
  /** Stable per conversation, for providers that route caches by it. */
  readonly sessionId?: string | undefined;
}

/** Token counts without cost; the loop adds the cost from the model's prices. */
export type TokenCounts = Omit<Usage, "cost" | "totalTokens">;

/**
 * Events of one answer. `index` counts content blocks from 0 in the order they start.
 * The last event is `done` or `error`; a stream that ends without either counts as cut (retryable).
 */
export type ProviderEvent =
  | { type: "start"; responseId?: string | undefined }
  | { type: "text_start"; index: number }
  | { type: "text_delta"; index: number; delta: string }
  | { type: "text_end"; index: number; signature?: string | undefined }
  | { type: "thinking_start"; index: number }
  | { type: "thinking_delta"; index: number; delta: string }
  | { type: "thinking_end"; index: number; signature?: string | undefined }
  | { type: "redacted_thinking"; index: number; data: string }
  | { type: "toolcall_start"; index: number; id: string; name: string }
  /** `delta` is raw JSON text of the arguments. */
  | { type: "toolcall_delta"; index: number; delta: string }
  /** The call is complete. `arguments` overrides what the deltas add up to. */
  | { type: "toolcall_end"; index: number; arguments?: Record<string, unknown> | undefined }
  | { type: "usage"; usage: Partial<TokenCounts> }
  | { type: "done"; stopReason: "stop" | "length" | "toolUse" }
  | { type: "error"; error: ProviderError };

/** A model service, named by the `api` of the models it speaks for (`anthropic-messages`, `openai-completions`, `offline`). */
export interface ProviderDefinition extends Definition<"provider"> {
  readonly summary: string;
  /** False when requests need no credential. */
  readonly needsKey: boolean;
  /** Starts the request. Must not throw and must not keep the process alive once `signal` aborts. */
  stream(request: ProviderRequest, ctx: Context): AsyncIterable<ProviderEvent>;
  /** Cheap check of a credential before it is stored; throws what is wrong with it. */
  verifyKey?(key: string, baseUrl: string | undefined, signal: AbortSignal, fetch?: typeof globalThis.fetch): Promise<void>;
  /** Models this service has built in, beside the catalogue. */
  readonly models?: readonly Model[] | undefined;
}

export function defineProvider(provider: Omit<ProviderDefinition, "kind">): ProviderDefinition {
  return define({ kind: "provider", ...provider });
}

declare module "../kernel/definition.ts" {
  interface Kinds {
    provider: ProviderDefinition;
  }
}
