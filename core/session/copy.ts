// The entries of a path for another file: one chain, without what belongs to the file they come from.
import type { SessionEntry } from "./entry.ts";

/** Names and labels stand for a whole file: labels are given anew by the copier, and the name is not inherited. */
const OF_THE_FILE = new Set<string>(["label", "session_info", "title_change"]);

/** @param path root → leaf. A compaction that kept from an entry that is left out keeps from the next one that is not. */
export function copiedEntries(path: readonly SessionEntry[]): SessionEntry[] {
  const copied: SessionEntry[] = [];
  /** Left-out entry → the next one that was copied. */
  const moved = new Map<string, string>();
  let skipped: string[] = [];
  let parentId: string | null = null;
  for (const entry of path) {
    if (OF_THE_FILE.has(entry.type)) {
      skipped.push(entry.id);
      continue;
    }
    for (const id of skipped) moved.set(id, entry.id);
    skipped = [];
    const kept =
      entry.type === "compaction" ? { firstKeptEntryId: moved.get(entry.firstKeptEntryId) ?? entry.firstKeptEntryId } : {};
    copied.push({ ...entry, ...kept, parentId } as SessionEntry);
    parentId = entry.id;
  }
  return copied;
}
