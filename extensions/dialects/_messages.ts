// Messages as the families' helpers give them to a model or write them down.
import { AgentMessage, type ModelMessage } from "mortise/extension";

/** What reaches a model: other roles become user messages or are left out. */
export function convertToLlm(messages: unknown): ModelMessage[] {
  return Array.isArray(messages) ? messages.flatMap(toModelMessage) : [];
}

function toModelMessage(value: unknown): ModelMessage[] {
  const parsed = AgentMessage.safeParse(value);
  if (!parsed.success) return [];
  const message = parsed.data;
  const { timestamp } = message;
  switch (message.role) {
    case "user":
    case "assistant":
    case "toolResult":
      return [message];
    case "developer":
    case "custom":
      return [{ role: "user", content: message.content, timestamp }];
    case "bashExecution":
      return message.excludeFromContext === true ? [] : [{ role: "user", content: bashText(message), timestamp }];
    case "branchSummary":
    case "compactionSummary":
      return [{ role: "user", content: `Summary of the conversation so far:\n\n${message.summary}`, timestamp }];
  }
}

function bashText(message: Extract<AgentMessage, { role: "bashExecution" }>): string {
  const code = message.exitCode === undefined || message.exitCode === 0 ? "" : `\n\nExit code: ${message.exitCode}`;
  return `Ran \`${message.command}\`\n\n${message.output}${code}`;
}

/** A transcript as text, one paragraph a part, for summaries. */
export function serializeConversation(messages: unknown): string {
  const parts: string[] = [];
  for (const message of convertToLlm(messages)) {
    if (message.role === "assistant") parts.push(...assistantParts(message));
    else if (message.role === "toolResult") parts.push(`[Tool result] ${textOf(message.content)}`);
    else parts.push(`[User] ${textOf(message.content)}`);
  }
  return parts.join("\n\n");
}

function assistantParts(message: Extract<ModelMessage, { role: "assistant" }>): string[] {
  return message.content.flatMap((block) => {
    if (block.type === "text") return [`[Assistant] ${block.text}`];
    if (block.type === "thinking") return [`[Assistant thinking] ${block.thinking}`];
    return block.type === "toolCall" ? [`[Tool call] ${block.name} ${JSON.stringify(block.arguments)}`] : [];
  });
}

function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content
    .map((block: { type: string; text?: string }) => (block.type === "text" ? (block.text ?? "") : "[image]"))
    .join("\n");
}

/** Four characters a token, as the families estimate. */
export function estimateTokens(message: unknown): number {
  return Math.ceil(serializeConversation([message]).length / 4);
}
