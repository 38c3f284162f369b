// The live conversations of this process. Implemented by core/agent/conversations.ts; sessions, background work and
// subagents use it.
import type { ConversationHandle, Selection } from "../agent/conversation-types.ts";
import { createToken } from "../kernel/services.ts";
import type { SessionLog } from "../session/log.ts";

export interface CreateConversation {
  /** An existing log, e.g. of a branch; else a new session is made. */
  readonly log?: SessionLog | undefined;
  /** Defaults to the attached conversation's, else to the daemon's. */
  readonly cwd?: string | undefined;
  /** Lineage in the header: a session id or a path. Blank counts as absent. */
  readonly parentSession?: string | undefined;
  /** The exact file (subagents); else the daemon's session folder decides. */
  readonly file?: string | undefined;
  /** Defaults to the attached conversation's, else to what `Models.initial()` says. */
  readonly selection?: Partial<Selection> | undefined;
  /** Set for subagents: never attached, `isSubagent` is true. */
  readonly parent?: ConversationHandle | undefined;
  /** Active tools by name; undefined offers all. */
  readonly activeTools?: readonly string[] | undefined;
  /** Blocks that replace the rendered system prompt (subagents). */
  readonly systemPrompt?: readonly string[] | undefined;
}

export interface ConversationChange {
  readonly type: "created" | "attached" | "detached" | "closed";
  readonly conversation: ConversationHandle;
}

export interface Conversations {
  /** The conversation whose frames go to the host and that commands act on. @throws {Error} before the first one is attached. */
  readonly attached: ConversationHandle;
  readonly hasAttached: boolean;
  /** All live ones, oldest first, subagents included. */
  list(): readonly ConversationHandle[];
  /** By id of the conversation or of its session. */
  get(id: string): ConversationHandle | undefined;
  /** The live conversation that writes a session file; compared by real path. */
  byFile(file: string): ConversationHandle | undefined;
  /** Makes a conversation that is not attached. Nothing touches the disk before its first user message. */
  create(options?: CreateConversation): ConversationHandle;
  /**
   * Opens a session file as a conversation that is not attached; the live one if it is open already.
   * @throws {SessionFormatError | SessionLockedError} nothing has changed then.
   */
  open(file: string): Promise<ConversationHandle>;
  /** Points the host at a conversation. The one before stays live, detached; replays nothing. */
  attach(conversation: ConversationHandle): void;
  /**
   * Attaches `next` and closes the one before: its frames stop first, so that no agent_end of an interrupted run is sent;
   * then it is aborted. Queues are dropped.
   */
  replace(next: ConversationHandle): Promise<void>;
  /** Aborts and closes. The attached one cannot be closed before another is attached, except by `closeAll`. */
  close(conversation: ConversationHandle, reason?: "closed" | "shutdown"): Promise<void>;
  closeAll(): Promise<void>;
  /** The conversation a subagent works for, over all levels; for others the conversation itself. */
  rootOf(conversation: ConversationHandle): ConversationHandle;
  onChange(listener: (change: ConversationChange) => void): () => void;
}

export const Conversations = createToken<Conversations>("conversations");
