// The durable record of one conversation: an append-only tree of entries in a version 3 JSONL file.
export interface SessionLog {
  readonly id: string;
  /** Absent for in-memory sessions; may not exist yet before the first user message. */
  readonly file: string | undefined;
}
