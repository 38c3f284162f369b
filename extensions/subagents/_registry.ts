// Which subagents the host may know of, and which frames about them it gets. Ids of a session that was left are stale: nothing
// of them is sent until they begin anew or the session is attached again.
import {
  type AgentProgress,
  CommandError,
  type Context,
  type ConversationHandle,
  Conversations,
  type SubagentSnapshot,
  type SubscriptionLevel,
} from "mortise/extension";
import { subagentEvent, subagentLifecycle, subagentProgress } from "./_frames.ts";
import { recordedFile } from "./_record.ts";

/** Finished subagents whose session files can still be read, and stale ids that are remembered (protocol-facts §1.4, §2.6). */
const REMEMBERED = 256;

export interface Tracked {
  readonly id: string;
  readonly index: number;
  readonly agent: string;
  readonly agentSource: SubagentSnapshot["agentSource"];
  readonly task: string;
  readonly assignment: string | undefined;
  readonly description: string | undefined;
  readonly parentToolCallId: string;
  readonly detached: boolean;
  /** The conversation that the host sees when it sees the subagent. */
  readonly root: ConversationHandle;
  sessionFile: string | undefined;
  status: SubagentSnapshot["status"];
  lastUpdate: number;
  progress: AgentProgress | undefined;
}

export class SubagentRegistry {
  level: SubscriptionLevel = "off";
  readonly #ctx: Context;
  /** All that live, whatever session they belong to. */
  readonly #live = new Set<Tracked>();
  /** Those the host knows, by id. */
  readonly #known = new Map<string, Tracked>();
  readonly #files = new Map<string, string>();
  readonly #stale = new Set<string>();

  constructor(ctx: Context) {
    this.#ctx = ctx;
  }

  /** True while a live subagent has the id. */
  isTaken(id: string): boolean {
    return [...this.#live].some((each) => each.id === id);
  }

  add(tracked: Tracked): void {
    this.#live.add(tracked);
    this.#known.set(tracked.id, tracked);
  }

  started(tracked: Tracked): void {
    this.#stale.delete(tracked.id);
    this.#known.set(tracked.id, tracked);
    tracked.status = "running";
    this.#lifecycle(tracked, "started");
  }

  progress(tracked: Tracked, progress: AgentProgress): void {
    tracked.progress = progress;
    tracked.lastUpdate = Date.now();
    if (this.level === "off" || !this.#isShown(tracked)) return;
    const { task, assignment } = tracked;
    this.#ctx.send(subagentProgress, { ...about(tracked), task, ...(assignment === undefined ? {} : { assignment }), progress });
  }

  event(tracked: Tracked, event: { type: string }): void {
    if (this.level !== "events" || !this.#isShown(tracked)) return;
    this.#ctx.send(subagentEvent, { id: tracked.id, event });
  }

  /** @param begun false for one that was given up in the queue: the host was never told that it started. */
  ended(tracked: Tracked, status: "completed" | "failed" | "aborted", begun: boolean): void {
    tracked.status = status;
    this.#live.delete(tracked);
    if (tracked.sessionFile !== undefined) this.#remember(tracked.id, tracked.sessionFile);
    if (begun && this.#isShown(tracked)) this.#lifecycle(tracked, status);
    if (this.#known.get(tracked.id) === tracked) this.#known.delete(tracked.id);
  }

  /** Another conversation is attached: what belongs to others is forgotten, what belongs to it and still lives is known again. */
  attached(root: ConversationHandle): void {
    for (const [id, { sessionFile }] of this.#known) {
      keep(this.#stale, id);
      if (sessionFile !== undefined) this.#remember(id, sessionFile);
    }
    this.#known.clear();
    for (const tracked of this.#live) {
      if (tracked.root !== root) continue;
      this.#stale.delete(tracked.id);
      this.#known.set(tracked.id, tracked);
    }
  }

  snapshots(): SubagentSnapshot[] {
    const list = [...this.#known.values()].sort((a, b) => a.index - b.index || (a.id < b.id ? -1 : 1));
    return list.map(({ root: _, detached: __, description, assignment, sessionFile, progress, ...rest }) => ({
      ...rest,
      ...(description === undefined ? {} : { description }),
      ...(assignment === undefined ? {} : { assignment }),
      ...(sessionFile === undefined ? {} : { sessionFile }),
      ...(progress === undefined ? {} : { progress }),
    }));
  }

  /** An id wins over a file; empty strings count as absent. @throws {CommandError} */
  sessionFile({ id, file }: { id?: string | undefined; file?: string | undefined }): string {
    if (id) {
      const found = this.#known.get(id)?.sessionFile ?? this.#files.get(id) ?? recordedFile(this.#attached, { id });
      if (found === undefined) throw new CommandError(`Unknown subagent or session file unavailable: ${id}`, "not_found");
      return found;
    }
    if (!file) throw new CommandError("get_subagent_messages requires subagentId or sessionFile", "invalid_params");
    const known = [...this.#known.values()].some(({ sessionFile }) => sessionFile === file);
    if (!known && ![...this.#files.values()].includes(file) && recordedFile(this.#attached, { file }) === undefined) {
      throw new CommandError("Unknown subagent session file", "not_found");
    }
    return file;
  }

  get #attached(): ConversationHandle {
    return this.#ctx.use(Conversations).attached;
  }

  #isShown(tracked: Tracked): boolean {
    return this.#known.get(tracked.id) === tracked && !this.#stale.has(tracked.id);
  }

  #lifecycle(tracked: Tracked, status: "started" | "completed" | "failed" | "aborted"): void {
    if (this.level === "off") return;
    const { description } = tracked;
    this.#ctx.send(subagentLifecycle, {
      id: tracked.id,
      ...about(tracked),
      ...(description === undefined ? {} : { description }),
      status,
    });
  }

  #remember(id: string, file: string): void {
    this.#files.delete(id);
    this.#files.set(id, file);
    const [oldest] = this.#files.keys();
    if (this.#files.size > REMEMBERED && oldest !== undefined) this.#files.delete(oldest);
  }
}

function keep(set: Set<string>, value: string): void {
  set.delete(value);
  set.add(value);
  const [oldest] = set;
  if (set.size > REMEMBERED && oldest !== undefined) set.delete(oldest);
}

function about({ agent, agentSource, index, sessionFile, parentToolCallId, detached }: Tracked) {
  return {
    agent,
    agentSource,
    index,
    parentToolCallId,
    ...(sessionFile === undefined ? {} : { sessionFile }),
    ...(detached ? { detached } : {}),
  };
}
