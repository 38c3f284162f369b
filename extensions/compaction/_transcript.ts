// Messages as text for the summariser. Text, because a request of calls and results would be taken for work to go on with.
import { type AgentMessage, type AssistantContent, type InputContent, Slices } from "mortise/extension";

/** Characters of one part. Tool results are long and mostly stale (agent-semantics §2.10). */
const RESULT_CHARS = 2000;
const CALL_CHARS = 1000;
const MIN_PART_CHARS = 200;
/** The line that says how many messages were left out. */
const NOTE_CHARS = 60;
/** A piece is at least this full: it ends between messages where that costs no more. */
const FULL_SHARE = 0.75;
const CONTINUED = "[continued]: ";

/**
 * The messages as text of at most `maxChars`: parts are shortened further, then the oldest are left out, visibly. Costs what fits,
 * not what is there.
 */
export async function transcript(messages: readonly AgentMessage[], maxChars: number): Promise<string> {
  const slices = new Slices();
  let limit = Math.max(MIN_PART_CHARS, maxChars);
  for (;;) {
    const { parts, leftOut } = await newest(messages, maxChars, limit, slices);
    if (leftOut === 0) return parts.join("\n\n").toWellFormed();
    if (limit <= MIN_PART_CHARS)
      return [`[${leftOut} earlier messages left out for want of room]`, ...parts].join("\n\n").toWellFormed();
    limit = Math.max(MIN_PART_CHARS, Math.floor(Math.min(limit, 40_000) / 2));
  }
}

/** The newest messages that fit, oldest first, and how many are before them. Room is kept for the line that says so. */
async function newest(messages: readonly AgentMessage[], maxChars: number, limit: number, slices: Slices) {
  const room = limit <= MIN_PART_CHARS ? maxChars - NOTE_CHARS : maxChars;
  const parts: string[] = [];
  let length = 0;
  let index = messages.length - 1;
  for (; index >= 0; index--) {
    if (slices.due) await slices.rest();
    const message = messages[index];
    const part = message === undefined ? "" : describe(message, limit);
    if (part === "") continue;
    if (length + part.length + 2 > room) break;
    length += part.length + 2;
    parts.push(part);
  }
  return { parts: parts.reverse(), leftOut: index + 1 };
}

/** Length of a transcript that is certainly cut into no more than `count` pieces of `maxChars`. */
export function lengthOfPieces(count: number, maxChars: number): number {
  return Math.floor(count * (maxChars * FULL_SHARE - CONTINUED.length));
}

/** A transcript as pieces of at most `maxChars`, cut between messages or, where one is long, inside of it. Nothing is left out. */
export function cutTranscript(text: string, maxChars: number): string[] {
  const pieces: string[] = [];
  let prefix = "";
  for (let from = 0; from < text.length; ) {
    const most = from + maxChars - prefix.length;
    const least = from + Math.ceil(maxChars * FULL_SHARE) - prefix.length;
    const between = most >= text.length ? -1 : text.slice(least, most).lastIndexOf("\n\n[");
    let end = between < 0 ? Math.min(most, text.length) : least + between;
    if (between < 0 && end < text.length && isHighSurrogate(text.charCodeAt(end - 1))) end--;
    pieces.push(prefix + text.slice(from, end));
    prefix = between < 0 ? CONTINUED : "";
    from = between < 0 ? end : end + 2;
  }
  return pieces;
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
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
