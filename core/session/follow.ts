// Incremental reading of a session file that someone else writes: `get_subagent_messages` (protocol-facts §1.4).

import type { AgentMessage } from "../../protocol/message.ts";
import { CommandError } from "../kernel/errors.ts";
import { messageOf } from "./convert.ts";
import { isEntry, isRecord, type SessionEntry, SessionHeader } from "./entry.ts";
import { SessionFormatError } from "./errors.ts";
import { readLines } from "./lines.ts";
import { openForReading, readHeader } from "./read.ts";
import { parseLine } from "./salvage.ts";

/** One answer ends after the line that passes this many bytes; the next call goes on from `nextByte`. */
const MAX_ANSWER_BYTES = 32 * 1024 * 1024;

export interface FollowResult {
  sessionFile: string;
  /** Where reading really began. */
  fromByte: number;
  /** Hand it in as `fromByte` the next time. */
  nextByte: number;
  /** The file was shorter than `fromByte`, so reading began anew. */
  reset: boolean;
  /** Header and entries of the complete lines read. */
  entries: (SessionEntry | SessionHeader)[];
  messages: AgentMessage[];
}

/**
 * Reads complete lines from a byte on. Which files may be read is the caller's to decide; that the file is a session is
 * checked here before anything of it is returned.
 * @throws {CommandError} "fromByte must be a finite number". @throws {SessionFormatError}
 */
export async function readFrom(file: string, fromByte?: unknown): Promise<FollowResult> {
  const start = startByte(fromByte);
  const result: FollowResult = { sessionFile: file, fromByte: start, nextByte: start, reset: false, entries: [], messages: [] };
  let handle: Awaited<ReturnType<typeof openForReading>>;
  try {
    handle = await openForReading(file);
  } catch (error) {
    if (error instanceof SessionFormatError && error.code === "not_found") return result;
    throw error;
  }
  try {
    const { size } = await handle.stat();
    if (size === 0 && start === 0) return result;
    if (start > size) Object.assign(result, { fromByte: 0, nextByte: 0, reset: true });
    if (size === 0) return result;
    if (!(await headerComplete(handle, file))) return result;
    await readLines(
      handle,
      (line) => {
        if (!line.complete) return false;
        if (line.bytes !== undefined) for (const value of parseLine(line.bytes).values) take(value, result);
        result.nextByte = line.offset + line.length + 1;
        return result.nextByte - result.fromByte < MAX_ANSWER_BYTES;
      },
      { start: result.fromByte, end: size },
    );
    return result;
  } finally {
    await handle.close();
  }
}

function startByte(value: unknown): number {
  if (value === undefined) return 0;
  if (typeof value !== "number" || !Number.isFinite(value))
    throw new CommandError("fromByte must be a finite number", "invalid_params");
  return Math.max(0, Math.trunc(value));
}

/** False while the first line is still being written. @throws {SessionFormatError} when it is complete and no header. */
async function headerComplete(handle: Awaited<ReturnType<typeof openForReading>>, file: string): Promise<boolean> {
  let complete = false;
  await readLines(handle, (line) => {
    complete = line.complete;
    return false;
  });
  if (complete) await readHeader(handle, file);
  return complete;
}

function take(value: unknown, result: FollowResult): void {
  if (isRecord(value) && value["type"] === "session") {
    const header = SessionHeader.safeParse(value);
    if (header.success) result.entries.push(header.data);
    return;
  }
  if (!isEntry(value)) return;
  result.entries.push(value);
  if (value.type !== "message") return;
  const message = messageOf(value);
  if (message !== undefined) result.messages.push(message);
}
