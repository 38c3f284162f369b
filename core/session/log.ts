// The durable record of one conversation: an append-only tree of entries in a version 3 JSONL file. The truth is in memory;
// the file follows it, one synchronous write per entry, from the first user message on.
import { dirname, join, resolve } from "node:path";
import type { AgentMessage } from "../../protocol/message.ts";
import { CommandError, errorMessage } from "../kernel/errors.ts";
import { Artifacts } from "./artifacts.ts";
import { inContext, PathContext, slotType } from "./context.ts";
import { copiedEntries } from "./copy.ts";
import {
  checkDraft,
  type EntryDraft,
  newEntryId,
  SESSION_VERSION,
  type SessionEntry,
  type SessionHeader,
  sessionUuid,
} from "./entry.ts";
import { SessionFormatError, SessionLockedError, SessionWriteError } from "./errors.ts";
import { entryLine, fileLines } from "./file-lines.ts";
import { acquireLock, type SessionLock } from "./lock.ts";
import { SessionIndex } from "./log-index.ts";
import { cleanName, type NameSource } from "./name.ts";
import { openForReading, type ReadReport, readHeader, readSession } from "./read.ts";
import { type SessionStats, sessionStats } from "./stats.ts";
import { sessionFileName, sessionFilePath } from "./store.ts";
import { EntryTree } from "./tree.ts";
import { removeLeftovers, SessionWriter } from "./writer.ts";

export interface CreateOptions {
  readonly cwd: string;
  /** Undefined keeps the session in memory. */
  readonly sessionsDir: string | undefined;
  /** Id or file of the session this one comes from. */
  readonly parentSession?: string | undefined;
  readonly id?: string | undefined;
  /** The exact file, instead of a generated name under `sessionsDir` (sub-agents). */
  readonly file?: string | undefined;
  /** Clock in Unix milliseconds. */
  readonly now?: (() => number) | undefined;
}

interface Parts {
  readonly header: SessionHeader;
  readonly tree: EntryTree;
  readonly file: string | undefined;
  readonly readOnly: boolean;
  readonly now: () => number;
  /** The line of another program that stands before the header. */
  readonly preamble?: Record<string, unknown> | undefined;
  readonly existing?: { size: number; outdated: boolean } | undefined;
  readonly lock?: SessionLock | undefined;
}

export class SessionLog {
  readonly header: SessionHeader;
  /** Absent for in-memory sessions; may not exist yet before the first user message. */
  readonly file: string | undefined;
  /** The side-car folder for outputs that are too long for the conversation. */
  readonly artifacts: Artifacts;
  readonly #tree: EntryTree;
  readonly #index: SessionIndex;
  readonly #readOnly: boolean;
  readonly #now: () => number;
  readonly #preamble: Record<string, unknown> | undefined;
  readonly #writer: SessionWriter | undefined;
  #leaf: string | null;
  #context: PathContext | undefined;
  #contextVersion = 0;

  private constructor(parts: Parts) {
    this.header = parts.header;
    this.file = parts.file;
    this.#tree = parts.tree;
    this.#readOnly = parts.readOnly;
    this.#now = parts.now;
    this.#preamble = parts.preamble;
    this.#leaf = parts.tree.lastId;
    this.#index = new SessionIndex(parts.header, parts.preamble, parts.tree.entries);
    this.artifacts = new Artifacts(parts.file);
    this.#writer =
      parts.file === undefined || parts.readOnly
        ? undefined
        : new SessionWriter(parts.file, parts.existing, parts.lock, () => this.#lines());
  }

  /** A new session; nothing touches the disk before `materialize`. */
  static create(options: CreateOptions): SessionLog {
    const now = options.now ?? Date.now;
    const at = now();
    const id = options.id ?? sessionUuid(at);
    const file =
      options.file ??
      (options.sessionsDir === undefined ? undefined : sessionFilePath(options.sessionsDir, options.cwd, id, new Date(at)));
    const header: SessionHeader = {
      type: "session",
      version: SESSION_VERSION,
      id,
      timestamp: new Date(at).toISOString(),
      cwd: options.cwd,
      ...(options.parentSession === undefined ? {} : { parentSession: options.parentSession }),
    };
    return new SessionLog({ header, tree: new EntryTree(), file, readOnly: false, now });
  }

  /**
   * Opens a file of any version. Damaged lines are skipped and reported; the file is not changed by opening. A log that is not
   * read-only holds the file's lock until `close`.
   * @throws {SessionFormatError} no session file. @throws {SessionLockedError} a live process writes to it.
   */
  static async open(
    path: string,
    options: { readOnly?: boolean | undefined; now?: (() => number) | undefined } = {},
  ): Promise<{ log: SessionLog; report: ReadReport }> {
    const readOnly = options.readOnly ?? false;
    const file = resolve(path);
    const handle = await openForReading(file);
    let lock: SessionLock | undefined;
    try {
      // The header comes first, so that no lock file appears beside something that is no session.
      await readHeader(handle, file);
      lock = readOnly ? undefined : lockFor(file);
      const { header, titleSlot, tree, report, size } = await readSession(handle, file);
      const existing = { size, outdated: report.version < SESSION_VERSION };
      const now = options.now ?? Date.now;
      return { log: new SessionLog({ header, tree, file, readOnly, now, preamble: titleSlot, existing, lock }), report };
    } catch (error) {
      lock?.release();
      throw error;
    } finally {
      await handle.close();
    }
  }

  get id(): string {
    return this.header.id;
  }
  get cwd(): string {
    return this.header.cwd;
  }
  get parentSession(): string | undefined {
    return this.header.parentSession;
  }
  get isReadOnly(): boolean {
    return this.#readOnly;
  }
  /** True when the file exists and follows the memory. */
  get isMaterialized(): boolean {
    return this.#writer?.exists ?? this.#readOnly;
  }
  /** The failure of the last write, until a later one has caught up. */
  get writeError(): Error | undefined {
    return this.#writer?.error;
  }
  get leafId(): string | null {
    return this.#leaf;
  }
  /** All entries in file order, other branches included. */
  get entries(): readonly SessionEntry[] {
    return this.#tree.entries;
  }
  entry(id: string): SessionEntry | undefined {
    return this.#tree.get(id);
  }
  /** The effective parent of an entry; null for a root. */
  parentOf(id: string): string | null {
    return this.#tree.parentOf(id);
  }
  /** Root → leaf. */
  path(leafId: string | null = this.#leaf): SessionEntry[] {
    return this.#tree.path(leafId);
  }

  /**
   * Adds an entry below the leaf and moves the leaf there. When the file exists, the entry is in it on return: it survives the
   * death of the process, not of the machine's power.
   * @throws {TypeError} a malformed or unserialisable entry; nothing is kept.
   * @throws {SessionWriteError} the entry is kept in memory and written with the next append that succeeds; after `close` it is not kept.
   */
  append(draft: EntryDraft): SessionEntry {
    if (this.#readOnly) throw new CommandError(`Session "${this.file ?? this.id}" is open for reading only`, "locked");
    if (this.#writer?.closed) throw new SessionWriteError(this.#writer.file, "the session is closed");
    checkDraft(draft);
    const entry = {
      ...draft,
      id: newEntryId((id) => this.#tree.has(id)),
      parentId: this.#leaf,
      timestamp: new Date(this.#now()).toISOString(),
    } as SessionEntry;
    const line = this.#writer === undefined ? undefined : entryLine(entry);
    this.#tree.add(entry);
    this.#leaf = entry.id;
    this.#index.add(entry);
    if (this.#context !== undefined && !this.#context.extend(entry)) this.#invalidate();
    if (line !== undefined && this.#writer?.wanted) this.#writer.append(line);
    return entry;
  }

  /**
   * Creates the file (0600, in folders of 0700) with everything so far. Call it with the first user message. Nothing happens
   * for in-memory sessions and when the file exists. @throws {SessionWriteError | SessionLockedError}
   */
  materialize(): void {
    if (this.#writer?.exists) this.#writer.retry();
    else this.#writer?.create();
  }

  /** The same without holding the event loop: for copies with a long history. Appending meanwhile is safe. */
  async materializeInSlices(): Promise<void> {
    await this.#writer?.createInSlices();
  }

  /** Moves the leaf, in memory only; null starts a second root. @throws {CommandError} not_found. */
  branchTo(id: string | null): void {
    if (id !== null && !this.#tree.has(id)) throw new CommandError(`No entry with id: ${id}`, "not_found");
    if (id === this.#leaf) return;
    this.#leaf = id;
    this.#invalidate();
  }

  /** In-context messages, oldest first. The same array grows while `contextVersion` stays the same. */
  context(): readonly AgentMessage[] {
    return this.#pathContext().messages;
  }
  /** Tokens of the in-context messages, kept while they are added: `estimated` throughout, `tokens` as services counted them. */
  get contextSize(): { readonly estimated: number; readonly tokens: number } {
    return this.#pathContext().size;
  }
  /** The entries of the path that are in context, state entries included; a compaction comes first, then what it kept. */
  contextEntries(): SessionEntry[] {
    return inContext(this.path(), (id) => this.#tree.substituteOf(id));
  }
  /** Changes when earlier messages left or changed: after `branchTo` and after a compaction. */
  get contextVersion(): number {
    return this.#contextVersion;
  }
  /** The model that the path ends with. */
  get model(): { readonly provider: string; readonly modelId: string } | undefined {
    return this.#pathContext().model;
  }
  /** The thinking level that the path ends with; undefined when it was never set. */
  get thinkingLevel(): string | undefined {
    return this.#pathContext().thinkingLevel;
  }
  /** The latest value of a slot on the path. */
  slotValue(name: string): unknown {
    return this.#pathContext().slots.get(name);
  }
  setSlot(name: string, value: unknown): SessionEntry {
    return this.append({ type: "custom", customType: slotType(name), data: value });
  }
  /** Appends only what differs from the path's state (agent-semantics §12 item 44). */
  recordModel(provider: string, modelId: string): void {
    const stored = this.#pathContext().chosenModel;
    if (stored?.provider === provider && stored.modelId === modelId) return;
    this.append({ type: "model_change", provider, modelId });
  }
  recordThinkingLevel(thinkingLevel: string): void {
    if ((this.thinkingLevel ?? "off") !== thinkingLevel) this.append({ type: "thinking_level_change", thinkingLevel });
  }

  get name(): string | undefined {
    return this.#index.name;
  }
  get nameSource(): NameSource | undefined {
    return this.#index.nameSource;
  }
  /**
   * Names the session. False when an automatic name would replace one of the user's.
   * @throws {CommandError} "Session name cannot be empty".
   */
  setName(name: string, source: NameSource): boolean {
    const clean = cleanName(name);
    if (source === "auto" && this.#index.nameSource === "user") return false;
    if (clean === this.#index.name && source === this.#index.nameSource) return true;
    const previousTitle = this.#index.name;
    // The programs that keep a title line read this type, pi reads the other.
    if (this.#preamble === undefined) this.append({ type: "session_info", name: clean, source });
    else this.append({ type: "title_change", title: clean, source, ...(previousTitle === undefined ? {} : { previousTitle }) });
    return true;
  }
  /** Entry id → label. */
  get labels(): ReadonlyMap<string, string> {
    return this.#index.labels;
  }

  /** User messages of the whole file in file order, those without text left out (`get_branch_messages`). */
  userMessages(): { entryId: string; text: string }[] {
    return this.#index.userMessages();
  }
  /** The first of them, without looking at the others. */
  firstUserMessage(): { entryId: string; text: string } | undefined {
    return this.#index.firstUserMessage();
  }

  /**
   * A new session with everything before a user message: what `branch` switches to. This log and its file stay as they are.
   * `text` is the text of that message. @throws {CommandError} "Invalid entry ID for branching".
   */
  branchCopy(entryId: string, options: Partial<CreateOptions> = {}): { log: SessionLog; text: string } {
    const text = this.#index.branchText(this.#tree.get(entryId));
    if (text === undefined) throw new CommandError("Invalid entry ID for branching", "invalid_params");
    return { log: this.copyPath(this.#tree.parentOf(entryId), options), text };
  }

  /** A new session with root → `leafId`, the labels on those entries, and this one as its parent. The name is not copied. */
  copyPath(leafId: string | null, options: Partial<CreateOptions> = {}): SessionLog {
    const copy = SessionLog.create({ ...this.#copyDefaults(options), ...options });
    for (const entry of copiedEntries(this.#tree.path(leafId))) copy.#adopt(entry);
    for (const [targetId, label] of this.labels) {
      if (copy.#tree.has(targetId)) copy.append({ type: "label", targetId, label });
    }
    return copy;
  }

  /** Counts over the in-context messages. */
  stats(): SessionStats {
    return sessionStats(this.context());
  }

  /** Releases the lock and the descriptor. The memory stays readable. @throws {SessionWriteError} held-back entries are lost. */
  close(): void {
    try {
      this.#writer?.retry();
    } finally {
      this.#writer?.close();
      this.artifacts.close();
    }
  }

  /** The copy lies beside its parent, whatever folder that was opened from, unless the caller names a place. */
  #copyDefaults(options: Partial<CreateOptions>): CreateOptions {
    const at = this.#now();
    const id = options.id ?? sessionUuid(at);
    const beside =
      this.file === undefined || "sessionsDir" in options
        ? undefined
        : join(dirname(this.file), sessionFileName(id, new Date(at)));
    return { cwd: this.cwd, sessionsDir: undefined, parentSession: this.file ?? this.id, now: this.#now, id, file: beside };
  }

  #adopt(entry: SessionEntry): void {
    const added = this.#tree.add(entry).entry;
    this.#leaf = added.id;
    this.#index.add(added);
  }

  #pathContext(): PathContext {
    this.#context ??= new PathContext(this.path(), (id) => this.#tree.substituteOf(id));
    return this.#context;
  }

  #invalidate(): void {
    this.#context = undefined;
    this.#contextVersion++;
  }

  /** The whole file as of now; entries that come while it is being written are the writer's to add. */
  #lines(): Iterable<string> {
    const { entries } = this.#tree;
    return fileLines(this.#preamble, this.header, entries, entries.length);
  }
}

function lockFor(file: string): SessionLock {
  try {
    const lock = acquireLock(file);
    if (lock.takenOver) removeLeftovers(file);
    return lock;
  } catch (error) {
    if (SessionLockedError.is(error)) throw error;
    throw new SessionFormatError(file, `it cannot be locked for writing (${errorMessage(error)})`);
  }
}
