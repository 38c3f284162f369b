// How many tokens a message takes, roughly: what is asked when no service has counted.
import type { AgentMessage, AssistantMessage } from "../../protocol/message.ts";
import { factsOf } from "./facts.ts";

const CHARS_PER_TOKEN = 4;
const IMAGE_TOKENS = 1200;

/** Tokens of one message, roughly. Remembered per message object. */
export function estimateTokens(message: AgentMessage): number {
  const facts = factsOf(message);
  facts.tokens ??= estimate(message);
  return facts.tokens;
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
 * The size of a context that grows message by message. What a service counted for an answer is taken for everything up to it;
 * counts from before the latest compaction are of a context that is gone, those of failed answers are of none
 * (agent-semantics §12 item 35).
 */
export class ContextSize {
  #estimated = 0;
  #compactedAt = Number.NEGATIVE_INFINITY;
  /** The last answer that was counted: its time, its count, and the estimate of everything up to it. */
  #counted: { readonly at: number; readonly tokens: number; readonly estimated: number } | undefined;

  /** All messages, estimated. */
  get estimated(): number {
    return this.#estimated;
  }
  /** All messages: as the service counted the last answer, plus an estimate of what came after it. */
  get tokens(): number {
    return this.#counted === undefined ? this.#estimated : this.#counted.tokens + this.#estimated - this.#counted.estimated;
  }

  add(message: AgentMessage): void {
    this.#estimated += estimateTokens(message);
    if (message.role === "compactionSummary") {
      this.#compactedAt = message.timestamp;
      if (this.#counted !== undefined && this.#counted.at <= message.timestamp) this.#counted = undefined;
    } else if (message.role === "assistant" && message.timestamp > this.#compactedAt) {
      const failed = message.stopReason === "error" || message.stopReason === "aborted";
      const tokens = usedTokens(message);
      if (!failed && tokens > 0) this.#counted = { at: message.timestamp, tokens, estimated: this.#estimated };
    }
  }
}

function usedTokens(message: AssistantMessage): number {
  const { input, output, cacheRead, cacheWrite, totalTokens } = message.usage;
  return totalTokens > 0 ? totalTokens : input + output + cacheRead + cacheWrite;
}
