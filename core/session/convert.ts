// Stored entries and messages → messages in context. Files of other programs hold roles and shapes this one does not have;
// they are turned into the nearest message here, once per object, so that identity is stable and caches by object hold.
import type { InputContent } from "../../protocol/content.ts";
import { type AgentMessage, type AssistantMessage, type CustomMessage, StopReason, type Usage } from "../../protocol/message.ts";
import { isRecord, type SessionEntry } from "./entry.ts";
import { factsOf } from "./facts.ts";

/** The in-context message of one entry, or undefined for state entries and messages that cannot be understood. */
export function messageOf(entry: SessionEntry): AgentMessage | undefined {
  if (!isMessage(entry)) return undefined;
  const facts = factsOf(entry.type === "message" ? entry.message : entry);
  if (facts.message === undefined) facts.message = convert(entry) ?? null;
  return facts.message ?? undefined;
}

function isMessage(entry: SessionEntry): boolean {
  const { type } = entry;
  if (type === "message") return isRecord(entry.message);
  return type === "custom_message" || type === "branch_summary" || type === "compaction";
}

function convert(entry: SessionEntry): AgentMessage | undefined {
  switch (entry.type) {
    case "message":
      return normalise(entry.message, entry.timestamp);
    case "custom_message":
      return customMessage(entry.customType, entry.content, entry.timestamp, entry);
    case "branch_summary":
      return {
        role: "branchSummary",
        summary: entry.summary,
        fromId: textOr(entry.fromId, "root"),
        timestamp: millis(entry.timestamp),
      };
    case "compaction":
      return {
        role: "compactionSummary",
        summary: entry.summary,
        ...(typeof entry.shortSummary === "string" ? { shortSummary: entry.shortSummary } : {}),
        tokensBefore: typeof entry.tokensBefore === "number" ? entry.tokensBefore : 0,
        timestamp: millis(entry.timestamp),
      };
    default:
      return undefined;
  }
}

/** Unix milliseconds of an ISO text; 0 when it is none. */
export function millis(iso: unknown): number {
  const value = typeof iso === "string" ? Date.parse(iso) : typeof iso === "number" ? iso : Number.NaN;
  return Number.isFinite(value) ? value : 0;
}

/** Undefined for what is no point in time. */
function isoOf(value: unknown): string | undefined {
  const at = new Date(typeof value === "number" ? value : Number.NaN);
  return Number.isNaN(at.getTime()) ? undefined : at.toISOString();
}

function textOr(value: unknown, otherwise: string): string {
  return typeof value === "string" ? value : otherwise;
}

function customMessage(
  customType: string,
  content: unknown,
  iso: string,
  from: { display?: unknown; details?: unknown; attribution?: unknown },
): CustomMessage {
  return {
    role: "custom",
    customType,
    content: inputContent(content) ?? "",
    display: from.display !== false,
    ...(from.details === undefined ? {} : { details: from.details }),
    ...(from.attribution === "user" || from.attribution === "agent" ? { attribution: from.attribution } : {}),
    timestamp: millis(iso),
  };
}

/** The message itself when it is sound (the usual case), else a repaired copy, else undefined. */
function normalise(message: AgentMessage, iso: string): AgentMessage | undefined {
  const raw: unknown = message;
  if (!isRecord(raw)) return undefined;
  const role: string = message.role;
  switch (message.role) {
    case "user":
    case "developer":
      return withContent(message, inputContent(message.content) ?? "", iso);
    case "toolResult":
      if (typeof raw["toolCallId"] !== "string") return undefined;
      return withContent(message, resultContent(message.content), iso, {
        toolName: textOr(raw["toolName"], "unknown"),
        isError: raw["isError"] === true,
      });
    case "assistant":
      return assistant(message, raw, iso);
    case "custom":
      if (typeof raw["customType"] !== "string") return undefined;
      return withContent(message, inputContent(message.content) ?? "", iso, { display: raw["display"] !== false });
    case "bashExecution":
      return withFields(message, iso, {
        command: textOr(raw["command"], ""),
        output: textOr(raw["output"], ""),
        cancelled: raw["cancelled"] === true,
        truncated: raw["truncated"] === true,
      });
    case "branchSummary":
      return withFields(message, iso, { summary: textOr(raw["summary"], ""), fromId: textOr(raw["fromId"], "root") });
    case "compactionSummary":
      return withFields(message, iso, {
        summary: textOr(raw["summary"], ""),
        tokensBefore: typeof raw["tokensBefore"] === "number" ? raw["tokensBefore"] : 0,
      });
    default:
      return foreign(role, raw, iso);
  }
}

/** Roles that only other programs write. Unknown ones stay in the file and out of context. */
function foreign(role: string, raw: Record<string, unknown>, iso: string): AgentMessage | undefined {
  const at = isoOf(raw["timestamp"]) ?? iso;
  if (role === "hookMessage") return customMessage(textOr(raw["customType"], "hook"), raw["content"], at, raw);
  if (role === "pythonExecution") {
    if (raw["excludeFromContext"] === true) return undefined;
    return customMessage(role, `Ran Python:\n${fence(textOr(raw["code"], ""))}\n${fence(textOr(raw["output"], ""))}`, at, {});
  }
  if (role === "fileMention") {
    const files = Array.isArray(raw["files"]) ? raw["files"].filter(isRecord) : [];
    const parts = files.map((file) => `File ${textOr(file["path"], "?")}:\n${fence(textOr(file["content"], "(not included)"))}`);
    return parts.length === 0 ? undefined : customMessage(role, parts.join("\n\n"), at, {});
  }
  return undefined;
}

/** A code fence longer than any run of backticks in `text`. */
export function fence(text: string): string {
  let longest = 2;
  for (const run of text.matchAll(/`{3,}/g)) longest = Math.max(longest, run[0].length);
  const ticks = "`".repeat(longest + 1);
  return `${ticks}\n${text}${text.endsWith("\n") || text === "" ? "" : "\n"}${ticks}`;
}

const NO_USAGE: Usage = {
  input: 0,
  output: 0,
  cacheRead: 0,
  cacheWrite: 0,
  totalTokens: 0,
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
};

function assistant(message: AssistantMessage, raw: Record<string, unknown>, iso: string): AssistantMessage {
  const content =
    typeof raw["content"] === "string"
      ? [{ type: "text" as const, text: raw["content"] }]
      : blocks(message.content, isAssistantBlock);
  return withContent(message, content ?? [], iso, {
    api: textOr(raw["api"], "unknown"),
    provider: textOr(raw["provider"], "unknown"),
    model: textOr(raw["model"], "unknown"),
    stopReason: StopReason.safeParse(raw["stopReason"]).data ?? "stop",
    usage: hasFullUsage(raw["usage"]) ? message.usage : usageOf(raw["usage"]),
  });
}

/** Usage with every count a number. */
export function usageOf(value: unknown): Usage {
  if (!isRecord(value)) return NO_USAGE;
  const cost = isRecord(value["cost"]) ? value["cost"] : {};
  const count = (from: Record<string, unknown>, field: string): number => {
    const n = from[field];
    return typeof n === "number" && Number.isFinite(n) ? n : 0;
  };
  const input = count(value, "input");
  const output = count(value, "output");
  const cacheRead = count(value, "cacheRead");
  const cacheWrite = count(value, "cacheWrite");
  const total = typeof value["totalTokens"] === "number" ? value["totalTokens"] : input + output + cacheRead + cacheWrite;
  return {
    ...value,
    ...misfits(value, { reasoningTokens: "number" }),
    input,
    output,
    cacheRead,
    cacheWrite,
    totalTokens: total,
    cost: {
      input: count(cost, "input"),
      output: count(cost, "output"),
      cacheRead: count(cost, "cacheRead"),
      cacheWrite: count(cost, "cacheWrite"),
      total: count(cost, "total"),
    },
  };
}

function hasFullUsage(value: unknown): boolean {
  if (!isRecord(value) || !isRecord(value["cost"])) return false;
  const { cost, reasoningTokens, totalTokens } = value;
  const counts = hasCounts(value) && typeof totalTokens === "number" && isSpare("number", reasoningTokens);
  return counts && hasCounts(cost) && typeof cost["total"] === "number";
}

function hasCounts(of: Record<string, unknown>): boolean {
  return (
    typeof of["input"] === "number" &&
    typeof of["output"] === "number" &&
    typeof of["cacheRead"] === "number" &&
    typeof of["cacheWrite"] === "number"
  );
}

type Spares = Readonly<Record<string, "string" | "number" | "boolean" | readonly string[]>>;
const from: Spares = { attribution: ["user", "agent"] };
/** Fields that a message can do without. Of another type, null above all, they are taken for absent. */
const SPARES: Readonly<Record<AgentMessage["role"], Spares>> = {
  user: { synthetic: "boolean", steering: "boolean", ...from },
  developer: from,
  assistant: { errorMessage: "string", errorStatus: "number", responseId: "string", duration: "number", ttft: "number" },
  toolResult: {},
  custom: from,
  bashExecution: { exitCode: "number", fullOutputPath: "string", excludeFromContext: "boolean" },
  branchSummary: {},
  compactionSummary: { shortSummary: "string" },
};
/** The same of content blocks. */
const BLOCK_SPARES: Spares = {
  textSignature: "string",
  detail: ["auto", "low", "high", "original"],
  thinkingSignature: "string",
  itemId: "string",
  thoughtSignature: "string",
  intent: "string",
};

function isSpare(type: Spares[string], value: unknown): boolean {
  if (value === undefined) return true;
  return typeof type === "string" ? typeof value === type : typeof value === "string" && type.includes(value);
}

/** Absent in place of every spare field of another type; undefined when there is none. */
function misfits(raw: Record<string, unknown>, spares: Spares): Record<string, undefined> | undefined {
  let found: Record<string, undefined> | undefined;
  for (const field in spares) {
    const type = spares[field];
    if (type === undefined || isSpare(type, raw[field])) continue;
    found ??= {};
    found[field] = undefined;
  }
  return found;
}

function withContent<M extends AgentMessage & { content: unknown }>(
  message: M,
  content: M["content"],
  iso: string,
  fields: Record<string, unknown> = {},
): M {
  fields["content"] = content;
  return withFields(message, iso, fields);
}

/** `message` itself if it has all of `fields` already and a time stamp, else a copy that has. */
function withFields<M extends AgentMessage>(message: M, iso: string, fields: Record<string, unknown>): M {
  const raw: unknown = message;
  if (!isRecord(raw)) return message;
  let sound = true;
  for (const key in fields) sound &&= raw[key] === fields[key];
  const wrong = misfits(raw, SPARES[message.role]);
  const stamped = typeof message.timestamp === "number";
  if (sound && stamped && wrong === undefined) return message;
  return { ...message, ...fields, ...wrong, ...(stamped ? {} : { timestamp: millis(iso) }) };
}

function inputContent(value: unknown): string | InputContent[] | undefined {
  return typeof value === "string" ? value : blocks(value, isInputBlock);
}

/** Other programs store the result of a tool as a text, too. */
function resultContent(value: unknown): InputContent[] {
  if (typeof value === "string") return [{ type: "text", text: value }];
  return blocks(value, isInputBlock) ?? [];
}

/** The array itself when every block is sound, else the sound ones, spare fields of another type left out. */
function blocks<B>(value: unknown, is: (block: unknown) => block is B): B[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const array: unknown[] = value;
  const isSound = (block: unknown): block is B => is(block) && isRecord(block) && misfits(block, BLOCK_SPARES) === undefined;
  if (array.every(isSound)) return array;
  return array.map((block) => (isRecord(block) ? { ...block, ...misfits(block, BLOCK_SPARES) } : block)).filter(is);
}

function isInputBlock(block: unknown): block is InputContent {
  if (!isRecord(block)) return false;
  if (block["type"] === "text") return typeof block["text"] === "string";
  return block["type"] === "image" && typeof block["data"] === "string" && typeof block["mimeType"] === "string";
}

function isAssistantBlock(block: unknown): block is AssistantMessage["content"][number] {
  if (!isRecord(block)) return false;
  switch (block["type"]) {
    case "text":
      return typeof block["text"] === "string";
    case "thinking":
      return typeof block["thinking"] === "string";
    case "redactedThinking":
      return typeof block["data"] === "string";
    case "toolCall":
      return typeof block["id"] === "string" && typeof block["name"] === "string" && isRecord(block["arguments"]);
    default:
      return false;
  }
}
