// What holds for the whole file whichever branch is active: name and labels.
import { millis } from "./convert.ts";
import { isRecord, type SessionEntry, type SessionHeader } from "./entry.ts";
import type { NameSource } from "./name.ts";

export class SessionIndex {
  readonly #entries: readonly SessionEntry[];
  readonly #labels = new Map<string, string>();
  #name: string | undefined;
  #nameSource: NameSource | undefined;

  /** @param entries the log's own list, which grows; those in it already are taken in here. */
  constructor(header: SessionHeader, titleSlot: Record<string, unknown> | undefined, entries: readonly SessionEntry[]) {
    this.#entries = entries;
    this.#rename(header.title, header.titleSource);
    let namedAt = 0;
    for (const entry of entries) {
      this.add(entry);
      if (entry.type === "session_info" || entry.type === "title_change") namedAt = millis(entry.timestamp);
    }
    // The title line is rewritten in place, so it may be newer than the last entry that names the session.
    if (titleSlot !== undefined && (namedAt === 0 || millis(titleSlot["updatedAt"]) > namedAt)) {
      this.#rename(titleSlot["title"], titleSlot["source"]);
    }
  }

  get name(): string | undefined {
    return this.#name;
  }
  get nameSource(): NameSource | undefined {
    return this.#nameSource;
  }
  get labels(): ReadonlyMap<string, string> {
    return this.#labels;
  }

  add(entry: SessionEntry): void {
    if (entry.type === "label") {
      if (typeof entry.label === "string" && entry.label !== "") this.#labels.set(entry.targetId, entry.label);
      else this.#labels.delete(entry.targetId);
    } else if (entry.type === "session_info") this.#rename(entry.name, entry.source ?? "user");
    else if (entry.type === "title_change") this.#rename(entry.title, entry.source);
  }

  userMessages(): { entryId: string; text: string }[] {
    return [...this.#userMessages()];
  }

  firstUserMessage(): { entryId: string; text: string } | undefined {
    for (const first of this.#userMessages()) return first;
    return undefined;
  }

  *#userMessages(): Iterable<{ entryId: string; text: string }> {
    for (const entry of this.#entries) {
      const text = this.branchText(entry);
      if (text !== undefined && text.trim() !== "") yield { entryId: entry.id, text };
    }
  }

  /** The joined text blocks of a user message; undefined for any other entry. */
  branchText(entry: SessionEntry | undefined): string | undefined {
    if (entry?.type !== "message" || entry.message.role !== "user") return undefined;
    const content: unknown = entry.message.content;
    if (typeof content === "string") return content;
    if (!Array.isArray(content)) return "";
    return content
      .filter(isRecord)
      .map((block) => (block["type"] === "text" && typeof block["text"] === "string" ? block["text"] : ""))
      .join("");
  }

  #rename(name: unknown, source: unknown): void {
    if (typeof name !== "string" || name.trim() === "") return;
    this.#name = name;
    this.#nameSource = source === "auto" ? "auto" : "user";
  }
}
