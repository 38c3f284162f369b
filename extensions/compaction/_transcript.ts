// Messages as text for the summariser. Text, because a request of calls and results would be taken for work to go on with.
import type { AgentMessage, AssistantContent, InputContent } from "mortise/extension";

/** Characters of one part. Tool results are long and mostly stale (agent-semantics §2.10). */
const RESULT_CHARS = 2000;
const CALL_CHARS = 1000;
const MIN_PART_CHARS = 200;

/** The messages as text of at most `maxChars`: parts are shortened further, then the oldest are left out, visibly. */
export function transcript(messages: readonly AgentMessage[], maxChars: number): string {
  let limit = Math.max(MIN_PART_CHARS, maxChars);
  for (;;) {
    const parts = messages.map((message) => describe(message, limit)).filter((part) => part !== "");
    const length = parts.reduce((sum, part) => sum + part.length + 2, 0);
    if (length <= maxChars) return parts.join("\n\n").toWellFormed();
    if (limit <= MIN_PART_CHARS) return newest(parts, maxChars).toWellFormed();
    limit = Math.max(MIN_PART_CHARS, Math.floor(Math.min(limit, 40_000) / 2));
  }
}

function newest(parts: readonly string[], maxChars: number): string {
  const kept: string[] = [];
  let length = 0;
  for (const part of [...parts].reverse()) {
    if (length + part.length > maxChars - 60) break;
    length += part.length + 2;
    kept.unshift(part);
  }
  return [`[${parts.length - kept.length} earlier messages left out for want of room]`, ...kept].join("\n\n");
}

function describe(message: AgentMessage, limit: number): string {
  switch (message.role) {
    case "user":
    case "developer":
      return labelled("User", inputText(message.content), limit);
    case "custom":
      return labelled(`Note (${message.customType})`, inputText(message.content), limit);
    case "assistant":
      return message.content
        .map((block) => assistantPart(block, limit))
        .filter((part) => part !== "")
        .join("\n\n");
    case "toolResult": {
      const label = `Result of ${message.toolName}${message.isError ? " (error)" : ""}`;
      return labelled(label, inputText(message.content) || "(no output)", Math.min(limit, RESULT_CHARS));
    }
    case "bashExecution":
      if (message.excludeFromContext === true) return "";
      return labelled("User ran", `${message.command}\n${message.output}`, Math.min(limit, RESULT_CHARS));
    case "branchSummary":
    case "compactionSummary":
      return labelled("Summary of earlier work", message.summary, limit);
  }
}

function assistantPart(block: AssistantContent, limit: number): string {
  if (block.type === "text") return labelled("Assistant", block.text, limit);
  if (block.type !== "toolCall") return "";
  return labelled(`Assistant calls ${block.name}`, JSON.stringify(block.arguments), Math.min(limit, CALL_CHARS));
}

function labelled(label: string, text: string, limit: number): string {
  return text.trim() === "" ? "" : `[${label}]: ${clip(text, limit)}`;
}

export function inputText(content: string | readonly InputContent[]): string {
  if (typeof content === "string") return content;
  return content.map((block) => (block.type === "text" ? block.text : "[image]")).join("\n");
}

/** Head and tail, with a note of what is missing between them. */
export function clip(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const head = Math.ceil(limit * 0.7);
  const tail = limit - head;
  return `${text.slice(0, head)}\n[… ${text.length - limit} characters left out …]\n${text.slice(text.length - tail)}`;
}
