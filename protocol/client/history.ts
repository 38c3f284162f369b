// Reads the whole history: page by page where the daemon can, in one answer where it cannot.

import { HostError } from "./errors.ts";
import { isRecord } from "./is-record.ts";

type Ask = (command: string, params: Record<string, unknown>) => Promise<unknown>;

const PAGE = 256;
/** The conversation moved on during the walk; the texts are those of daemons that send no code. */
const MOVED_CODES: ReadonlySet<unknown> = new Set(["session_busy", "stale_cursor", "busy"]);
const MOVED_TEXTS: ReadonlySet<string> = new Set([
  "Cannot page messages while the session is changing",
  "RPC message cursor is stale",
]);

/** All messages, oldest first. Falls back to one best-effort snapshot when the conversation changes during the walk. */
export async function readHistory(ask: Ask, paged: boolean): Promise<Record<string, unknown>[]> {
  if (paged) {
    try {
      return await walk(ask);
    } catch (error) {
      if (!moved(error)) throw error;
    }
  }
  return messagesOf(await ask("get_messages", {}));
}

async function walk(ask: Ask): Promise<Record<string, unknown>[]> {
  const all: Record<string, unknown>[] = [];
  let cursor: string | undefined;
  do {
    const page = await ask("get_messages_page", { limit: PAGE, ...(cursor === undefined ? {} : { cursor }) });
    all.push(...messagesOf(page));
    const next = isRecord(page) ? page["nextCursor"] : undefined;
    cursor = typeof next === "string" ? next : undefined;
  } while (cursor !== undefined);
  return all;
}

function moved(error: unknown): boolean {
  return error instanceof HostError && (MOVED_CODES.has(error.code) || MOVED_TEXTS.has(error.message));
}

function messagesOf(data: unknown): Record<string, unknown>[] {
  const messages = isRecord(data) ? data["messages"] : undefined;
  return Array.isArray(messages) ? messages.filter(isRecord) : [];
}
