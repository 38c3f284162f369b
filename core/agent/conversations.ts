// The live conversations of this process: one attached to the host, others detached (background work, subagents). Being
// attached is a property of this table, not of a conversation: attaching only re-points, nothing is copied or replayed.
import { realpathSync, statSync } from "node:fs";
import { isAbsolute } from "node:path";
import { ThinkingLevel } from "../../protocol/model.ts";
import { CommandError } from "../kernel/errors.ts";
import type { ConversationChange, Conversations, CreateConversation } from "../services/agent.ts";
import { FollowUpMode, InterruptMode, SteeringMode } from "../services/known-settings.ts";
import { Launch } from "../services/launch.ts";
import { Models } from "../services/models.ts";
import { SessionLog } from "../session/log.ts";
import { damageText } from "../session/report.ts";
import { Conversation } from "./conversation.ts";
import type { ConversationHandle, MessageUpdateMode, QueueMode, Selection } from "./conversation-types.ts";
import type { AgentEnvironment } from "./environment.ts";
import { notice } from "./events.ts";
import { sessionClosing } from "./hook-points.ts";
import { untilAborted } from "./until-aborted.ts";
import { unlimited } from "./work.ts";

export interface ConversationsOptions {
  readonly env: AgentEnvironment;
  readonly cwd: string;
  /** Undefined keeps sessions in memory (`--no-session`). A function, because a session folder can depend on settings. */
  readonly sessionsDir: () => string | undefined;
}

export class ConversationTable implements Conversations {
  readonly #options: ConversationsOptions;
  readonly #live: Conversation[] = [];
  /** By real path. */
  readonly #opening = new Map<string, Promise<Conversation>>();
  readonly #listeners = new Set<(change: ConversationChange) => void>();
  /** The parent of a subagent's conversation. */
  readonly #parents = new WeakMap<Conversation, ConversationHandle>();
  /** Aborted when the conversation is detached. */
  readonly #shown = new WeakMap<Conversation, AbortController>();
  #attached: Conversation | undefined;
  readonly #lost: string[] = [];

  constructor(options: ConversationsOptions) {
    this.#options = options;
  }

  get attached(): Conversation {
    if (this.#attached === undefined) throw new Error("No conversation is attached yet");
    return this.#attached;
  }
  get hasAttached(): boolean {
    return this.#attached !== undefined;
  }

  /** Session files that do not hold everything that was said: it could not be written, up to their closing. */
  get incomplete(): readonly string[] {
    return this.#lost;
  }

  list(): readonly Conversation[] {
    return [...this.#live];
  }

  get(id: string): Conversation | undefined {
    return this.#live.find((conversation) => conversation.id === id);
  }

  byFile(file: string): Conversation | undefined {
    const wanted = real(file);
    return this.#live.find((conversation) => conversation.log.file !== undefined && real(conversation.log.file) === wanted);
  }

  create(options: CreateConversation = {}): Conversation {
    const before = this.#attached;
    const log =
      options.log ??
      SessionLog.create({
        cwd: options.cwd ?? before?.cwd ?? this.#options.cwd,
        sessionsDir: this.#options.sessionsDir(),
        parentSession: options.parentSession?.trim() ? options.parentSession : undefined,
        file: options.file,
      });
    const { env } = this.#options;
    const initial = this.#initialSelection(log, before);
    const conversation = new Conversation({
      env,
      log,
      // Of a stored session only: who names a directory means it, and an isolated subagent must not land in another one.
      cwd: options.log === undefined || isDirectory(log.cwd) ? log.cwd : this.#options.cwd,
      selection: {
        model: options.selection?.model ?? initial.model,
        thinkingLevel: options.selection?.thinkingLevel ?? initial.thinkingLevel,
      },
      isSubagent: options.parent !== undefined,
      activeTools: options.activeTools ?? before?.activeTools ?? env.launch.tools,
      systemPrompt: options.systemPrompt,
    });
    if (options.parent !== undefined) this.#parents.set(conversation, options.parent);
    // A new session says what it began with, so that opening it later finds the same model and level.
    if (log.entries.length === 0) conversation.recordSelection();
    this.#takeOverModes(conversation, before);
    this.#live.push(conversation);
    this.#tell({ type: "created", conversation });
    return conversation;
  }

  open(file: string): Promise<Conversation> {
    const live = this.byFile(file);
    if (live !== undefined) return Promise.resolve(live);
    // Two requests for one file are one: the second would find the file locked by the first.
    const path = real(file);
    const opening = this.#opening.get(path) ?? this.#openLog(file);
    this.#opening.set(path, opening);
    return opening.finally(() => this.#opening.delete(path));
  }

  async #openLog(file: string): Promise<Conversation> {
    const { log, report } = await SessionLog.open(file);
    try {
      const conversation = this.create({ log });
      this.#tellOfOpening(conversation, damageText(file, report));
      // While the host waits anyway, so that the first turn of a long session is like any other.
      await conversation.providerView.prepare(log.context());
      return conversation;
    } catch (error) {
      // Whatever is wrong with it, the file must not stay locked by us.
      const made = this.#live.find((conversation) => conversation.log === log);
      if (made === undefined) log.close();
      else await this.close(made);
      throw error;
    }
  }

  #tellOfOpening(conversation: Conversation, damage: string | undefined): void {
    const { log, cwd } = conversation;
    const warn = (message: string) => conversation.emit(notice, { level: "warning", message, source: "session" });
    if (damage !== undefined) warn(damage);
    if (cwd !== log.cwd) warn(`The working directory of the session is gone: "${log.cwd}". It goes on in "${cwd}"`);
  }

  attach(conversation: ConversationHandle): void {
    const next = this.#own(conversation);
    const before = this.#attached;
    if (before === next) return;
    if (next.isSubagent) throw new CommandError("A subagent's conversation cannot be attached");
    if (before !== undefined) this.#hide(before);
    this.#attached = next;
    next.setAttached(true);
    this.#shown.set(next, unlimited(new AbortController()));
    if (before !== undefined) this.#tell({ type: "detached", conversation: before });
    this.#tell({ type: "attached", conversation: next });
  }

  async replace(conversation: ConversationHandle): Promise<void> {
    const before = this.#attached;
    this.attach(conversation);
    if (before !== undefined && before !== conversation) await this.close(before);
  }

  async close(conversation: ConversationHandle, reason: "closed" | "shutdown" = "closed"): Promise<void> {
    const own = this.#own(conversation);
    if (own === this.#attached && reason === "closed") {
      throw new CommandError("The attached conversation can be closed only when another takes its place");
    }
    this.#hide(own);
    const ctx = own.context();
    if (ctx.hasHooks(sessionClosing)) {
      const limit = AbortSignal.timeout(2000);
      await untilAborted(ctx.hook(sessionClosing, { conversation: own, reason }, { signal: limit }), limit, 0);
    }
    const isComplete = await own.close();
    if (!isComplete && own.log.file !== undefined) this.#lost.push(own.log.file);
    const index = this.#live.indexOf(own);
    if (index >= 0) this.#live.splice(index, 1);
    if (this.#attached === own) this.#attached = undefined;
    this.#tell({ type: "closed", conversation: own });
  }

  async closeAll(): Promise<void> {
    await Promise.all(this.list().map((conversation) => this.close(conversation, "shutdown")));
  }

  onChange(listener: (change: ConversationChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  rootOf(conversation: ConversationHandle): ConversationHandle {
    const own = this.#live.find((live) => live === conversation);
    const parent = own && this.#parents.get(own);
    return parent === undefined ? conversation : this.rootOf(parent);
  }

  /** Aborted while the host does not see what the conversation shows; a subagent shows with its root. */
  shown(conversation: ConversationHandle): AbortSignal {
    const root = this.rootOf(conversation);
    const own = this.#live.find((live) => live === root);
    return (own && this.#shown.get(own)?.signal) ?? AbortSignal.abort();
  }

  #hide(conversation: Conversation): void {
    conversation.setAttached(false);
    this.#shown.get(conversation)?.abort(new Error("The conversation is no longer attached"));
  }

  /** The table's own object behind a handle. */
  #own(conversation: ConversationHandle): Conversation {
    const own = this.#live.find((live) => live === conversation);
    if (own === undefined) throw new CommandError(`No live conversation with id: ${conversation.id}`, "not_found");
    return own;
  }

  /**
   * What a stored session ends with, else what the conversation before had, else the daemon's defaults. What the command line
   * names comes first for the session that the daemon starts with.
   */
  #initialSelection(log: SessionLog, before: Conversation | undefined): Selection {
    const ctx = this.#options.env.context(undefined, {});
    const models = ctx.tryUse(Models);
    const asked = before === undefined ? ctx.tryUse(Launch)?.options : undefined;
    const isModelAsked = asked?.model !== undefined || asked?.provider !== undefined;
    const stored = isModelAsked ? undefined : log.model && models?.find(log.model.provider, log.model.modelId);
    const usable = stored !== undefined && models?.hasKey(stored.provider) !== false ? stored : undefined;
    const isLevelAsked = asked?.thinking !== undefined;
    const initial = before === undefined && (usable === undefined || isLevelAsked) ? models?.initial() : undefined;
    const model = usable ?? before?.selection.model ?? initial?.model;
    const level = ThinkingLevel.safeParse(isLevelAsked ? initial?.thinkingLevel : log.thinkingLevel);
    const thinkingLevel = level.success
      ? level.data
      : (before?.selection.thinkingLevel ?? initial?.thinkingLevel ?? model?.thinking?.defaultLevel ?? "off");
    return { model, thinkingLevel: model === undefined ? thinkingLevel : (models?.clamp(model, thinkingLevel) ?? thinkingLevel) };
  }

  /** Queue modes and the form of updates belong to the host, not to a session: they survive a change of session. */
  #takeOverModes(conversation: Conversation, before: Conversation | undefined): void {
    const ctx = conversation.context();
    const { queue } = conversation;
    queue.steeringMode = before?.queue.steeringMode ?? modeOf(ctx.setting(SteeringMode));
    queue.followUpMode = before?.queue.followUpMode ?? modeOf(ctx.setting(FollowUpMode));
    queue.interruptMode = before?.queue.interruptMode ?? (ctx.setting(InterruptMode) === "wait" ? "wait" : "immediate");
    const mode: MessageUpdateMode | undefined = before?.messageUpdates;
    if (mode !== undefined) conversation.messageUpdates = mode;
  }

  #tell(change: ConversationChange): void {
    for (const listener of [...this.#listeners]) listener(change);
  }
}

function modeOf(value: string): QueueMode {
  return value === "all" ? "all" : "one-at-a-time";
}

/** A session may come from another machine, and folders go: nothing could run there. */
function isDirectory(cwd: string): boolean {
  try {
    return isAbsolute(cwd) && statSync(cwd).isDirectory();
  } catch {
    return false;
  }
}

function real(file: string): string {
  try {
    return realpathSync(file);
  } catch {
    return file;
  }
}
