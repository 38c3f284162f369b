// The conversations that go on detached. An entry lives from the moment the host turned away until it comes back, or until the
// conversation is disposed: when its turn and its jobs are over, when it is cancelled, or to make room for a younger one.
import {
  type BackgroundConversations,
  type BackgroundMove,
  type Context,
  type ConversationHandle,
  Conversations,
  errorMessage,
  Jobs,
  SessionBackgroundLimit,
} from "mortise/extension";

interface Entry {
  readonly conversation: ConversationHandle;
  /** Unix milliseconds. */
  readonly detachedAt: number;
  /** Set once it is being ended; resolves when it is disposed. */
  stopped?: Promise<void>;
}

/** One line of `get_background_sessions`. */
export interface BackgroundSession {
  sessionId: string;
  sessionFile?: string;
  title: string;
  detachedAt: number;
  streaming: boolean;
  stopping: boolean;
}

/** Characters of the first prompt that stand for a conversation without a name. */
const TITLE_LENGTH = 80;

export class BackgroundTable implements BackgroundConversations {
  readonly #ctx: Context;
  /** Oldest first. */
  readonly #entries = new Map<ConversationHandle, Entry>();

  constructor(ctx: Context) {
    this.#ctx = ctx;
    this.#adopt();
  }

  /** After a reload of this extension: what an earlier generation had moved to the background is still at work there. */
  #adopt(): void {
    for (const conversation of this.#ctx.use(Conversations).list()) {
      if (conversation.isAttached || conversation.isSubagent) continue;
      if (!conversation.isStreaming && this.#jobs(conversation) === 0) continue;
      const entry: Entry = { conversation, detachedAt: Date.now() };
      this.#entries.set(conversation, entry);
      this.#disposeWhenDone(entry);
    }
  }

  async moveBehind(next: ConversationHandle): Promise<BackgroundMove | undefined> {
    const conversations = this.#ctx.use(Conversations);
    const before = conversations.attached;
    // A compaction or handoff by hand belongs to the host's view of the session: it is given up with it (DESIGN §9).
    if (before.takenBy !== undefined) await before.abort("The host changed the session", { resume: false, park: false });
    const target = await this.#live(next);
    this.#entries.delete(target);
    conversations.attach(target);
    const streaming = before.isStreaming;
    const limit = this.#ctx.setting(SessionBackgroundLimit);
    if (limit === 0 || (!streaming && this.#jobs(before) === 0)) {
      await conversations.close(before);
      return undefined;
    }
    const entry: Entry = { conversation: before, detachedAt: Date.now() };
    this.#entries.set(before, entry);
    const displaced = this.#displace(limit);
    this.#disposeWhenDone(entry);
    return {
      sessionId: before.log.id,
      ...(before.log.file === undefined ? {} : { sessionFile: before.log.file }),
      streaming,
      displaced: displaced.map(({ conversation }) => conversation.log.id),
      message: describeMove(before, streaming, displaced.length),
    };
  }

  byFile(file: string): ConversationHandle | undefined {
    const found = this.#ctx.use(Conversations).byFile(file);
    const entry = found && this.#entries.get(found);
    return entry === undefined || entry.stopped !== undefined ? undefined : entry.conversation;
  }

  list(): BackgroundSession[] {
    const live = new Set(this.#ctx.use(Conversations).list());
    const entries = [...this.#entries.values()].filter(({ conversation }) => live.has(conversation));
    return entries.map(({ conversation, detachedAt, stopped }) => ({
      sessionId: conversation.log.id,
      ...(conversation.log.file === undefined ? {} : { sessionFile: conversation.log.file }),
      title: titleOf(conversation),
      detachedAt,
      streaming: conversation.isStreaming,
      stopping: stopped !== undefined,
    }));
  }

  /** Ends a conversation and waits until it is disposed; false when none of that session id is in the background. */
  async cancel(sessionId: string): Promise<boolean> {
    const entry = [...this.#entries.values()].find(({ conversation }) => conversation.log.id === sessionId);
    if (entry === undefined) return false;
    await this.#stop(entry);
    return true;
  }

  /** Resolves once no conversation that is being stopped holds the file. */
  async whenReleased(file: string): Promise<void> {
    const found = this.#ctx.use(Conversations).byFile(file);
    await (found && this.#entries.get(found)?.stopped);
  }

  /** True for a conversation in the background that is not being ended. */
  has(conversation: ConversationHandle): boolean {
    const entry = this.#entries.get(conversation);
    return entry !== undefined && entry.stopped === undefined;
  }

  /** The conversation itself, or its file opened again when it ended while the host was still being asked. */
  async #live(next: ConversationHandle): Promise<ConversationHandle> {
    const { file } = next.log;
    await this.#entries.get(next)?.stopped;
    return next.signal.aborted && file !== undefined ? this.#ctx.use(Conversations).open(file) : next;
  }

  /** Stops the oldest until the rest is within the limit; those that stop already do not count. */
  #displace(limit: number): Entry[] {
    const going = [...this.#entries.values()].filter((entry) => entry.stopped === undefined);
    const displaced = going.slice(0, Math.max(0, going.length - limit));
    for (const entry of displaced) void this.#stop(entry);
    return displaced;
  }

  #stop(entry: Entry): Promise<void> {
    entry.stopped ??= this.#close(entry);
    return entry.stopped;
  }

  async #close(entry: Entry): Promise<void> {
    try {
      await this.#ctx.use(Conversations).close(entry.conversation);
    } catch (error) {
      // At shutdown it may be gone already.
      this.#ctx.log.debug("A background conversation was not closed", { error: errorMessage(error) });
    } finally {
      this.#entries.delete(entry.conversation);
    }
  }

  #disposeWhenDone(entry: Entry): void {
    this.#whenDone(entry).catch((error: unknown) => this.#ctx.reportError(this.#ctx.owner, "background conversation", error));
  }

  async #whenDone(entry: Entry): Promise<void> {
    const { conversation } = entry;
    const isCurrent = () => this.#entries.get(conversation) === entry && entry.stopped === undefined;
    while (isCurrent() && (conversation.isStreaming || this.#jobs(conversation) > 0)) {
      await conversation.whenIdle();
      // The last frames and the start of queued work come in the same turn of the event loop as the end of the run.
      await new Promise((resolve) => setImmediate(resolve));
      if (!conversation.isStreaming) await this.#ctx.tryUse(Jobs)?.whenIdle(conversation);
    }
    if (isCurrent()) await this.#stop(entry);
  }

  #jobs(conversation: ConversationHandle): number {
    return this.#ctx.tryUse(Jobs)?.running(conversation) ?? 0;
  }
}

function titleOf(conversation: ConversationHandle): string {
  const { name } = conversation.log;
  if (name !== undefined) return name;
  const first = conversation.log.firstUserMessage()?.text.trim().replace(/\s+/g, " ") ?? "";
  return first.length <= TITLE_LENGTH ? first : `${first.slice(0, TITLE_LENGTH).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

function describeMove(conversation: ConversationHandle, streaming: boolean, displaced: number): string {
  const title = titleOf(conversation);
  const what = title === "" ? "The conversation" : `"${title}"`;
  const goesOn = streaming ? `${what} goes on in the background` : `${what} stays in the background until its jobs are done`;
  return displaced === 0 ? goesOn : `${goesOn}; stopped to make room: ${displaced}`;
}
