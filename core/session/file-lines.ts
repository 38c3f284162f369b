// A session as the lines of its file.
import type { SessionEntry, SessionHeader } from "./entry.ts";

/** @param count entries to take: more may be added while the lines are being written. */
export function* fileLines(
  preamble: Record<string, unknown> | undefined,
  header: SessionHeader,
  entries: readonly SessionEntry[],
  count: number,
): Generator<string> {
  if (preamble !== undefined) yield JSON.stringify(preamble);
  yield JSON.stringify(header);
  for (let i = 0; i < count; i++) {
    const entry = entries[i];
    if (entry !== undefined) yield entryLine(entry);
  }
}

/** One entry, type first: readers find the start of a line in damaged bytes by it. */
export function entryLine(entry: SessionEntry): string {
  const { type, id, parentId, timestamp, ...rest } = entry;
  return JSON.stringify({ type, id, parentId, timestamp, ...rest });
}
