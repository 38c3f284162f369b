// `ctx.sessionManager` over the session log: reading for everybody, writing for the `setup` of a new session.
import { dirname } from "node:path";
import { AgentMessage, type Context, type ConversationHandle } from "mortise/extension";
import { storable, toContent } from "./_results.ts";
import { isObject } from "./_schema.ts";

type Log = ConversationHandle["log"];
type Entry = ReturnType<Log["path"]>[number];

interface TreeNode {
  entry: Entry;
  children: TreeNode[];
  label?: string;
}

/** Reads the session of the context's conversation at each call; entries are the log's own and must not be changed. */
export function createSessionManager(ctx: Context): Record<string, unknown> {
  const log = (): Log => ctx.conversation.log;
  return {
    getEntries: () => [...log().entries],
    getBranch: (fromId?: string) => log().path(fromId ?? log().leafId),
    getEntry: (id: string) => log().entry(id),
    getLeafId: () => log().leafId,
    getLeafEntry: () => {
      const { leafId } = log();
      return leafId === null ? undefined : log().entry(leafId);
    },
    getLabel: (id: string) => log().labels.get(id),
    getTree: () => treeOf(log()),
    getChildren: (id: string) => log().entries.filter((entry) => log().parentOf(entry.id) === id),
    getSessionFile: () => log().file,
    getSessionId: () => log().id,
    getSessionName: () => log().name,
    getSessionDir: () => {
      const { file } = log();
      return file === undefined ? undefined : dirname(file);
    },
    getHeader: () => ({ ...log().header }),
    getCwd: () => ctx.conversation.cwd,
    isPersisted: () => log().file !== undefined,
    buildSessionContext: () => ({
      messages: [...log().context()],
      thinkingLevel: ctx.conversation.selection.thinkingLevel,
      model: log().model ?? null,
    }),
  };
}

function treeOf(log: Log): TreeNode[] {
  const nodes = new Map<string, TreeNode>();
  const roots: TreeNode[] = [];
  for (const entry of log.entries) {
    const label = log.labels.get(entry.id);
    const node: TreeNode = { entry, children: [], ...(label === undefined ? {} : { label }) };
    nodes.set(entry.id, node);
    const parentId = log.parentOf(entry.id);
    const siblings = parentId === null ? roots : (nodes.get(parentId)?.children ?? roots);
    siblings.push(node);
  }
  return roots;
}

/** The session manager with appending, for a session that is being set up. */
export function createSessionWriter(ctx: Context): Record<string, unknown> {
  const log = (): Log => ctx.conversation.log;
  const changed = <T>(entry: T): T => {
    ctx.conversation.reload();
    return entry;
  };
  return {
    ...createSessionManager(ctx),
    appendMessage: (message: unknown) =>
      changed(log().append({ type: "message", message: AgentMessage.parse(stamped(message)) }).id),
    appendCustomEntry: (customType: string, data?: unknown) =>
      log().append({ type: "custom", customType: String(customType), data: storable(data) }).id,
    appendCustomMessageEntry: (customType: string, content: unknown, display = true, details?: unknown) =>
      changed(
        log().append({
          type: "custom_message",
          customType: String(customType),
          content: typeof content === "string" ? content : toContent(content),
          display: display === true,
          ...(details === undefined ? {} : { details: storable(details) }),
        }).id,
      ),
    appendSessionInfo: (name: string) => log().setName(String(name), "user"),
    appendLabelChange: (targetId: string, label?: string) => setLabel(ctx, targetId, label),
  };
}

function stamped(message: unknown): unknown {
  return isObject(message) ? { timestamp: Date.now(), ...message } : message;
}

/** Sets or clears a label. @throws {Error} when no entry has that id. */
export function setLabel(ctx: Context, targetId: string, label: string | undefined): void {
  const { log } = ctx.conversation;
  if (log.entry(targetId) === undefined) throw new Error(`Entry ${targetId} not found`);
  log.append({ type: "label", targetId, ...(label === undefined || label === "" ? {} : { label }) });
}

/** Moves the conversation to another entry of its session tree. @throws {CommandError} not_found. */
export function moveTo(ctx: Context, targetId: string): void {
  const { conversation } = ctx;
  conversation.log.branchTo(targetId);
  conversation.reload();
}
