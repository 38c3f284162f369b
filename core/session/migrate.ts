// Older formats → version 3, in memory, line by line. Version 1 is a flat list without ids; version 2 has the tree but names
// the role of extension messages "hookMessage". The file itself is rewritten by the first write, after a backup.
import { isRecord, SESSION_VERSION } from "./entry.ts";

/** Turns the raw entries of one file, in order, into version 3 shapes. */
export class Migration {
  readonly #from: number;
  /** Version 1: logical line number (the header is 0) → id. Damaged lines count, so that indices keep their meaning. */
  readonly #ids: (string | undefined)[] = [undefined];
  #previous: string | null = null;

  constructor(version: number | undefined) {
    this.#from = version ?? 1;
  }

  /** True when the file is older than version 3. */
  get needed(): boolean {
    return this.#from < SESSION_VERSION;
  }

  /** A line was lost; it still takes a place in the count. */
  skip(): void {
    if (this.#from < 2) this.#ids.push(undefined);
  }

  apply(raw: unknown): unknown {
    if (!this.needed || !isRecord(raw)) return raw;
    const entry: Record<string, unknown> = { ...raw };
    if (this.#from < 2) this.#identify(entry);
    const message = entry["message"];
    if (isRecord(message) && message["role"] === "hookMessage") entry["message"] = { ...message, role: "custom" };
    return entry;
  }

  /** Ids are the line numbers in hex: the same at every load until the file is rewritten. */
  #identify(entry: Record<string, unknown>): void {
    const id = this.#ids.length.toString(16).padStart(8, "0");
    entry["id"] = id;
    entry["parentId"] = this.#previous;
    entry["timestamp"] ??= new Date(0).toISOString();
    this.#previous = id;
    if (entry["type"] === "compaction" && typeof entry["firstKeptEntryIndex"] === "number") {
      entry["firstKeptEntryId"] = this.#keptId(entry["firstKeptEntryIndex"]) ?? id;
      delete entry["firstKeptEntryIndex"];
    }
    this.#ids.push(id);
  }

  /** The id at that line, or at the next one that was not lost. */
  #keptId(index: number): string | undefined {
    return this.#ids.find((id, at) => at >= index && id !== undefined);
  }
}
