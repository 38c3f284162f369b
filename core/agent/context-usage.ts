// How full the model's context is: what the service counted for the last answer, plus an estimate of what came after it.
import type { AgentMessage, AssistantMessage } from "../../protocol/message.ts";
import type { ContextUsage } from "./conversation-types.ts";

const CHARS_PER_TOKEN = 4;
const IMAGE_TOKENS = 1200;
const estimates = new WeakMap<AgentMessage, number>();

/** Tokens of one message, roughly. Remembered per message object. */
export function estimateTokens(message: AgentMessage): number {
  let tokens = estimates.get(message);
  if (tokens === undefined) {
    tokens = estimate(message);
    estimates.set(message, tokens);
  }
  return tokens;
}

function estimate(message: AgentMessage): number {
  switch (message.role) {
    case "bashExecution":
      return message.excludeFromContext === true
        ? 0
        : Math.ceil((message.command.length + message.output.length) / CHARS_PER_TOKEN);
    case "branchSummary":
    case "compactionSummary":
      return Math.ceil(message.summary.length / CHARS_PER_TOKEN);
    default:
      return typeof message.content === "string"
        ? Math.ceil(message.content.length / CHARS_PER_TOKEN)
        : message.content.reduce((sum, block) => sum + blockTokens(block), 0);
  }
}

function blockTokens(block: AssistantMessage["content"][number] | { type: "image" }): number {
  switch (block.type) {
    case "image":
      return IMAGE_TOKENS;
    case "text":
      return Math.ceil(block.text.length / CHARS_PER_TOKEN);
    case "thinking":
      return Math.ceil(block.thinking.length / CHARS_PER_TOKEN);
    case "redactedThinking":
      return Math.ceil(block.data.length / CHARS_PER_TOKEN);
    case "toolCall":
      return Math.ceil((block.name.length + JSON.stringify(block.arguments).length) / CHARS_PER_TOKEN);
  }
}

/**
 * Tokens in context. Usage from before the latest compaction counts a context that is gone and is ignored, as is that of
 * failed answers (agent-semantics §12 item 35).
 */
export function contextUsage(messages: readonly AgentMessage[], contextWindow: number | undefined): ContextUsage {
  const compactedAt = messages.findLast((message) => message.role === "compactionSummary")?.timestamp ?? Number.NEGATIVE_INFINITY;
  const counted = messages.findLastIndex(
    (message) =>
      message.role === "assistant" &&
      message.timestamp > compactedAt &&
      message.stopReason !== "error" &&
      message.stopReason !== "aborted" &&
      usedTokens(message) > 0,
  );
  const base = messages[counted];
  let tokens = base?.role === "assistant" ? usedTokens(base) : 0;
  for (let index = counted + 1; index < messages.length; index++) {
    const message = messages[index];
    if (message !== undefined) tokens += estimateTokens(message);
  }
  const window = contextWindow ?? 0;
  return { tokens, contextWindow: window, percent: window === 0 ? 0 : (tokens / window) * 100 };
}

function usedTokens(message: AssistantMessage): number {
  const { input, output, cacheRead, cacheWrite, totalTokens } = message.usage;
  return totalTokens > 0 ? totalTokens : input + output + cacheRead + cacheWrite;
}

/** `contextUsage`, computed again only when messages or window changed: hosts ask often. */
export class UsageMeter {
  #known: { last: AgentMessage | undefined; length: number; window: number | undefined; value: ContextUsage } | undefined;

  read(messages: readonly AgentMessage[], window: number | undefined): ContextUsage {
    const last = messages.at(-1);
    const known = this.#known;
    if (known !== undefined && known.last === last && known.length === messages.length && known.window === window)
      return known.value;
    const value = contextUsage(messages, window);
    this.#known = { last, length: messages.length, window, value };
    return value;
  }
}
