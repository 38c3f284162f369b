// Counts and sums over messages, for `get_session_stats` (protocol-facts §1.9).
import type { AgentMessage } from "../../protocol/message.ts";
import { usageOf } from "./convert.ts";
import { isRecord } from "./entry.ts";

export interface SessionStats {
  userMessages: number;
  assistantMessages: number;
  toolCalls: number;
  toolResults: number;
  totalMessages: number;
  tokens: { input: number; output: number; reasoning: number; cacheRead: number; cacheWrite: number; total: number };
  /** US dollars. */
  cost: number;
}

/** Usage that a tool reports in `details.usage` (sub-agents) counts in. */
export function sessionStats(messages: readonly AgentMessage[]): SessionStats {
  const stats: SessionStats = {
    userMessages: 0,
    assistantMessages: 0,
    toolCalls: 0,
    toolResults: 0,
    totalMessages: messages.length,
    tokens: { input: 0, output: 0, reasoning: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
    cost: 0,
  };
  for (const message of messages) {
    if (message.role === "user") stats.userMessages++;
    else if (message.role === "assistant") {
      stats.assistantMessages++;
      for (const block of message.content) if (block.type === "toolCall") stats.toolCalls++;
      addUsage(stats, message.usage);
    } else if (message.role === "toolResult") {
      stats.toolResults++;
      if (isRecord(message.details) && isRecord(message.details["usage"])) addUsage(stats, message.details["usage"]);
    }
  }
  return stats;
}

function addUsage(stats: SessionStats, value: unknown): void {
  const usage = usageOf(value);
  stats.tokens.input += usage.input;
  stats.tokens.output += usage.output;
  stats.tokens.reasoning += usage.reasoningTokens ?? 0;
  stats.tokens.cacheRead += usage.cacheRead;
  stats.tokens.cacheWrite += usage.cacheWrite;
  stats.tokens.total += usage.totalTokens;
  stats.cost += usage.cost.total;
}
