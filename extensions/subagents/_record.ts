// The index of subagents in the session of their parent: `subagent_spawn` entries as veyyon writes them (agent-semantics §1.2), one
// when a subagent starts and one when it ends. They are no part of the context. What a process that was killed left open is closed
// when its session is opened again, and the session files of earlier subagents are found by them.
import { lstatSync } from "node:fs";
import { basename, join } from "node:path";
import { type ConversationHandle, errorMessage, type Logger, type SubagentResult, z } from "mortise/extension";
import type { Tracked } from "./_registry.ts";

const Recorded = z.looseObject({
  type: z.literal("subagent_spawn"),
  agentId: z.string(),
  sessionFile: z.string().optional(),
  status: z.string(),
});
type Recorded = z.infer<typeof Recorded>;

/** One name of an id like `Outer.Inner`. */
const PART = /^[\p{L}\p{N}_-]+$/u;

const INTERRUPTED = "Interrupted: the process that ran it ended";

export function recordStart(parent: ConversationHandle, tracked: Tracked, isolated: boolean, log: Logger): void {
  append(parent, { ...about(tracked), isolation: isolated ? "worktree" : "none", status: "running" }, log);
}

export function recordEnd(
  parent: ConversationHandle,
  tracked: Tracked,
  isolated: boolean,
  result: SubagentResult,
  log: Logger,
): void {
  const { exitCode, durationMs, usage, error, abortReason } = result;
  const reason = error ?? abortReason;
  const entry = {
    ...about(tracked),
    isolation: isolated ? "worktree" : "none",
    status: tracked.status,
    ...{ exitCode, durationMs },
    ...(usage === undefined ? {} : { usage }),
    ...(reason === undefined ? {} : { error: reason }),
  };
  append(parent, entry, log);
}

/** Ends the record of subagents that the session says are running, except for those in `live`, the session files in use. */
export function closeRecords(conversation: ConversationHandle, live: ReadonlySet<string>, log: Logger): void {
  if (conversation.log.isReadOnly) return;
  for (const entry of recordsOf(conversation).values()) {
    const { type: _, id: __, parentId: ___, timestamp: ____, ...fields } = entry;
    if (entry.status !== "running" || entry.sessionFile === undefined || live.has(entry.sessionFile)) continue;
    append(conversation, { ...fields, status: "aborted", exitCode: 1, error: INTERRUPTED }, log);
  }
}

/** The session file of a subagent of this session, also of an earlier process; undefined when it has none. */
export function recordedFile(conversation: ConversationHandle, by: { id: string } | { file: string }): string | undefined {
  const { dir } = conversation.log.artifacts;
  if (dir === undefined) return undefined;
  for (const { agentId, sessionFile } of recordsOf(conversation).values()) {
    if (sessionFile === undefined) continue;
    // Whatever a session that came from elsewhere says: only files beside it.
    const file = join(dir, basename(sessionFile));
    if ("id" in by ? agentId === by.id : file === by.file) return file;
  }
  const nested = nestedFile(conversation, dir, "id" in by ? by.id : basename(by.file, ".jsonl"));
  return "id" in by || nested === by.file ? nested : undefined;
}

/** Subagents of subagents are recorded in the files of those, and lie in folders that are named after them. */
function nestedFile(conversation: ConversationHandle, dir: string, id: string): string | undefined {
  const names = id.split(".");
  const [top = ""] = names;
  if (names.length < 2 || !names.every((name) => PART.test(name)) || !recordsOf(conversation).has(top)) return undefined;
  const folders = names.slice(0, -1).map((_, index) => names.slice(0, index + 1).join("."));
  const file = join(dir, ...folders, `${id}.jsonl`);
  return lstatSync(file, { throwIfNoEntry: false })?.isFile() === true ? file : undefined;
}

/** The last entry of each subagent. */
function recordsOf(conversation: ConversationHandle): Map<string, Recorded> {
  const found = new Map<string, Recorded>();
  for (const entry of conversation.log.entries) {
    if (entry.type !== "subagent_spawn") continue;
    const recorded = Recorded.safeParse(entry);
    if (recorded.success) found.set(recorded.data.agentId, recorded.data);
  }
  return found;
}

function about({ id, agent, task, sessionFile }: Tracked) {
  return { agentId: id, agentName: agent, task, ...(sessionFile === undefined ? {} : { sessionFile }) };
}

/** A session that is closed already, or cannot be written, keeps no record. */
function append(conversation: ConversationHandle, fields: Record<string, unknown>, log: Logger): void {
  try {
    conversation.log.append({ ...fields, type: "subagent_spawn" });
  } catch (error) {
    log.debug("A subagent was not recorded", { error: errorMessage(error) });
  }
}
