// The lines of a session file, version 3: a header, then entries that form a tree by id and parentId. The format is shared
// with pi, oh-my-pi and veyyon, so unknown entry types and unknown fields are kept as they are.
import { randomBytes } from "node:crypto";
import { z } from "zod";
import { InputContent } from "../../protocol/content.ts";
import type { AgentMessage } from "../../protocol/message.ts";

export const SESSION_VERSION = 3;

/** A field that a session can do without: one of another type counts as absent. */
const spare = z.string().optional().catch(undefined);

/** The first line. `version` is absent in the oldest files; `parentSession` is a session id or a path. */
export const SessionHeader = z.looseObject({
  type: z.literal("session"),
  version: z.number().int().positive().optional(),
  id: z.string().min(1),
  timestamp: z.string(),
  cwd: z.string().catch(""),
  title: spare,
  titleSource: spare,
  parentSession: spare,
});
export type SessionHeader = z.infer<typeof SessionHeader>;

/** The fixed-size line that oh-my-pi and veyyon keep before the header and rewrite in place. */
export const TitleSlot = z.looseObject({
  type: z.literal("title"),
  title: spare,
  source: spare,
  updatedAt: z.union([z.string(), z.number()]).optional().catch(undefined),
});
export type TitleSlot = z.infer<typeof TitleSlot>;

export interface EntryBase {
  readonly type: string;
  readonly id: string;
  readonly parentId: string | null;
  /** ISO 8601. */
  readonly timestamp: string;
}

export interface MessageEntry extends EntryBase {
  readonly type: "message";
  readonly message: AgentMessage;
}
/** pi writes `provider` and `modelId`, the others `model: "provider/id"`. Use `modelOf`. */
export interface ModelChangeEntry extends EntryBase {
  readonly type: "model_change";
  readonly provider?: string | undefined;
  readonly modelId?: string | undefined;
  readonly model?: string | undefined;
  readonly role?: string | undefined;
}
export interface ThinkingLevelChangeEntry extends EntryBase {
  readonly type: "thinking_level_change";
  readonly thinkingLevel: string;
}
export interface CompactionEntry extends EntryBase {
  readonly type: "compaction";
  readonly summary: string;
  readonly shortSummary?: string | undefined;
  /** The first entry before the compaction that stays in context. */
  readonly firstKeptEntryId: string;
  readonly tokensBefore: number;
  readonly details?: unknown;
  readonly fromExtension?: boolean | undefined;
}
export interface BranchSummaryEntry extends EntryBase {
  readonly type: "branch_summary";
  readonly fromId: string;
  readonly summary: string;
  readonly details?: unknown;
}
/** State of an extension; never in context. `slot:<name>` holds a slot's value. */
export interface CustomEntry extends EntryBase {
  readonly type: "custom";
  readonly customType: string;
  readonly data?: unknown;
}
export interface CustomMessageEntry extends EntryBase {
  readonly type: "custom_message";
  readonly customType: string;
  readonly content: string | InputContent[];
  readonly display: boolean;
  readonly details?: unknown;
  readonly attribution?: "user" | "agent" | undefined;
}
export interface LabelEntry extends EntryBase {
  readonly type: "label";
  readonly targetId: string;
  /** Absent clears the label. */
  readonly label?: string | undefined;
}
export interface SessionInfoEntry extends EntryBase {
  readonly type: "session_info";
  readonly name?: string | undefined;
  readonly source?: string | undefined;
}
export interface TitleChangeEntry extends EntryBase {
  readonly type: "title_change";
  readonly title?: string | undefined;
  readonly previousTitle?: string | undefined;
  readonly source?: string | undefined;
}
/** Entries without a meaning here: kept, shown to hosts, never interpreted. At run time `type` may be any other string. */
export interface OtherEntry extends EntryBase {
  readonly type:
    | "service_tier_change"
    | "ttsr_injection"
    | "mode_change"
    | "mcp_tool_selection"
    | "session_init"
    | "subagent_spawn"
    | "settings_snapshot"
    | "reset_boundary"
    | "credential_pin";
  readonly [field: string]: unknown;
}

export type SessionEntry =
  | MessageEntry
  | ModelChangeEntry
  | ThinkingLevelChangeEntry
  | CompactionEntry
  | BranchSummaryEntry
  | CustomEntry
  | CustomMessageEntry
  | LabelEntry
  | SessionInfoEntry
  | TitleChangeEntry
  | OtherEntry;

type Drafted<E> = E extends SessionEntry ? Omit<E, "id" | "parentId" | "timestamp"> : never;
/** What `append` takes: an entry without the fields that the log fills in. */
export type EntryDraft = Drafted<SessionEntry>;

/** Eight hex digits that `taken` does not know. */
export function newEntryId(taken: (id: string) => boolean): string {
  for (;;) {
    const id = randomBytes(4).toString("hex");
    if (!taken(id)) return id;
  }
}

/** A version 7 UUID: time-sortable, so that file names and ids order alike. `at` is in Unix milliseconds. */
export function sessionUuid(at: number = Date.now()): string {
  const bytes = randomBytes(16);
  bytes.writeUIntBE(at, 0, 6);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x70, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  const hex = bytes.toString("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The strings each known type cannot do without; checked by hand because a full parse of 20,000 entries takes too long. */
const REQUIRED: Readonly<Record<string, readonly string[]>> = {
  compaction: ["summary"],
  branch_summary: ["summary"],
  custom: ["customType"],
  custom_message: ["customType"],
  label: ["targetId"],
};

/** True when `value` has the outline of an entry: identity, and the fields its type cannot do without. */
export function isEntry(value: unknown): value is SessionEntry {
  if (!isRecord(value) || typeof value["type"] !== "string" || typeof value["id"] !== "string" || value["id"] === "")
    return false;
  if (value["type"] === "session" || value["type"] === "title") return false;
  const parent = value["parentId"];
  if (parent !== null && typeof parent !== "string") return false;
  if (value["type"] === "message") return isRecord(value["message"]) && typeof value["message"]["role"] === "string";
  const required = Object.hasOwn(REQUIRED, value["type"]) ? (REQUIRED[value["type"]] ?? []) : [];
  return required.every((field) => typeof value[field] === "string");
}

const text = z.string();
const content = z.union([z.string(), z.array(InputContent)]);
const messageShapes = z.discriminatedUnion("role", [
  z.looseObject({ role: z.literal("user"), content, timestamp: z.number() }),
  z.looseObject({ role: z.literal("developer"), content, timestamp: z.number() }),
  z.looseObject({ role: z.literal("assistant"), content: z.array(z.looseObject({ type: text })), timestamp: z.number() }),
  z.looseObject({ role: z.literal("toolResult"), toolCallId: text, toolName: text, content: z.array(InputContent) }),
  z.looseObject({ role: z.literal("custom"), customType: text, content }),
  z.looseObject({ role: z.literal("bashExecution"), command: text, output: text }),
  z.looseObject({ role: z.literal("branchSummary"), summary: text, fromId: text }),
  z.looseObject({ role: z.literal("compactionSummary"), summary: text }),
]);
const draftShapes: Readonly<Record<string, z.ZodType>> = {
  message: z.looseObject({ message: messageShapes }),
  compaction: z.looseObject({ summary: text, firstKeptEntryId: text, tokensBefore: z.number() }),
  branch_summary: z.looseObject({ summary: text, fromId: text }),
  custom: z.looseObject({ customType: text.min(1) }),
  custom_message: z.looseObject({ customType: text.min(1), content, display: z.boolean() }),
  label: z.looseObject({ targetId: text, label: text.optional() }),
  thinking_level_change: z.looseObject({ thinkingLevel: text }),
  session_info: z.looseObject({ name: text.optional() }),
  title_change: z.looseObject({ title: text.optional() }),
};

/**
 * Refuses what would make a session unreadable before it is kept or written (agent-semantics §12 item 46).
 * @throws {TypeError} names the field and what was expected.
 */
export function checkDraft(draft: EntryDraft): void {
  const type: unknown = draft.type;
  if (typeof type !== "string" || type === "" || type === "session" || type === "title") {
    throw new TypeError(`Session entry needs a type other than "session" and "title", found ${JSON.stringify(type) ?? "none"}`);
  }
  const shape = Object.hasOwn(draftShapes, type) ? draftShapes[type] : undefined;
  const result = shape?.safeParse(draft);
  if (result === undefined || result.success) return;
  const issue = result.error.issues[0];
  throw new TypeError(
    `Session entry "${type}" is malformed at ${issue?.path.join(".") || "its top"}: ${issue?.message ?? "unknown"}`,
  );
}

/** Provider and model id of a model change, whichever program wrote it; undefined for other roles and broken ones. */
export function modelOf(entry: ModelChangeEntry): { provider: string; modelId: string } | undefined {
  if (entry.role !== undefined && entry.role !== "default" && entry.role !== "temporary") return undefined;
  if (typeof entry.provider === "string" && typeof entry.modelId === "string") {
    return { provider: entry.provider, modelId: entry.modelId };
  }
  if (typeof entry.model !== "string") return undefined;
  const slash = entry.model.indexOf("/");
  if (slash <= 0 || slash === entry.model.length - 1) return undefined;
  return { provider: entry.model.slice(0, slash), modelId: entry.model.slice(slash + 1) };
}
