// The arithmetic of `get_messages_page`: cursors, limits, byte budget (protocol-facts §6.6). Whether paging is allowed right
// now is the caller's to say.
import { z } from "zod";
import type { AgentMessage } from "../../protocol/message.ts";
import { CommandError } from "../kernel/errors.ts";

export const DEFAULT_PAGE_LIMIT = 100;
export const MAX_PAGE_LIMIT = 256;
/** Serialised messages of one page; a single bigger message still makes a page of its own. */
export const PAGE_BYTES = 786_432;
const MAX_CURSOR_LENGTH = 2048;

const Cursor = z.strictObject({
  version: z.literal(1),
  sessionId: z.string(),
  leafId: z.string().nullable(),
  messageCount: z.number().int().nonnegative(),
  offset: z.number().int().positive(),
});
type Cursor = z.infer<typeof Cursor>;

/** The state that a walk over the pages must not see change. */
export interface PageSource {
  readonly sessionId: string;
  readonly leafId: string | null;
  readonly messages: readonly AgentMessage[];
}

export interface Page {
  messages: AgentMessage[];
  /** Absent on the last page. */
  nextCursor?: string;
  totalMessages: number;
}

/** @throws {CommandError} invalid_params for limit and cursor, stale_cursor when the source changed since the cursor was made. */
export function messagesPage(source: PageSource, cursor?: unknown, limit?: unknown): Page {
  const count = pageLimit(limit);
  const offset = cursor === undefined || cursor === null ? 0 : pageOffset(source, cursor);
  const messages: AgentMessage[] = [];
  let bytes = 2;
  for (const message of source.messages.slice(offset, offset + count)) {
    bytes += Buffer.byteLength(JSON.stringify(message), "utf8") + 1;
    if (messages.length > 0 && bytes > PAGE_BYTES) break;
    messages.push(message);
  }
  const end = offset + messages.length;
  const page: Page = { messages, totalMessages: source.messages.length };
  if (end < source.messages.length) page.nextCursor = encode(source, end);
  return page;
}

function pageLimit(limit: unknown): number {
  if (limit === undefined || limit === null) return DEFAULT_PAGE_LIMIT;
  if (typeof limit === "number" && Number.isInteger(limit) && limit >= 1 && limit <= MAX_PAGE_LIMIT) return limit;
  throw new CommandError(`RPC message page limit must be between 1 and ${MAX_PAGE_LIMIT}`, "invalid_params");
}

function pageOffset(source: PageSource, text: unknown): number {
  const cursor = typeof text === "string" ? decode(text) : undefined;
  if (cursor === undefined || cursor.offset >= cursor.messageCount)
    throw new CommandError("Invalid RPC message cursor", "invalid_params");
  if (
    cursor.sessionId !== source.sessionId ||
    cursor.leafId !== source.leafId ||
    cursor.messageCount !== source.messages.length
  ) {
    throw new CommandError("RPC message cursor is stale", "stale_cursor");
  }
  return cursor.offset;
}

function encode(source: PageSource, offset: number): string {
  const cursor: Cursor = {
    version: 1,
    sessionId: source.sessionId,
    leafId: source.leafId,
    messageCount: source.messages.length,
    offset,
  };
  return Buffer.from(JSON.stringify(cursor), "utf8").toString("base64url");
}

/** Only what `encode` makes: base64url in its canonical form around exactly these fields. */
function decode(text: string): Cursor | undefined {
  if (text === "" || text.length > MAX_CURSOR_LENGTH || !/^[A-Za-z0-9_-]+$/.test(text)) return undefined;
  const bytes = Buffer.from(text, "base64url");
  if (bytes.toString("base64url") !== text) return undefined;
  try {
    const result = Cursor.safeParse(JSON.parse(bytes.toString("utf8")));
    return result.success ? result.data : undefined;
  } catch {
    return undefined;
  }
}
