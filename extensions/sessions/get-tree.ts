import { CommandError, defineCommand, type SessionEntry, z } from "mortise/extension";

const PREVIEW_LENGTH = 200;
/** What a frame can nest: JSON of more levels exceeds the stack here, and that of many hosts before. */
const MAX_LEVELS = 1500;

interface Node {
  id: string;
  type: string;
  role?: string | undefined;
  text?: string | undefined;
  label?: string | undefined;
  timestamp: string;
  children: Node[];
}

const node: z.ZodType<Node> = z.object({
  id: z.string(),
  type: z.string(),
  role: z.string().optional(),
  text: z.string().optional().describe("Beginning of a message's text"),
  label: z.string().optional(),
  timestamp: z.string(),
  get children() {
    return z.array(node);
  },
});

export default defineCommand({
  name: "get_tree",
  group: "Session",
  summary: "The entries of the session log as a tree.",
  concurrency: "serial",
  source: "mortise",
  params: z.object({}),
  result: z.object({ tree: z.array(node), leafId: z.string().nullable() }),
  example: {
    params: {},
    result: { tree: [], leafId: null },
    failure: "The session is 20000 entries deep, more than a frame can nest: use get_entries",
  },
  run(ctx) {
    const { log } = ctx.conversation;
    const levels = new Map<string, number>();
    for (const { id } of log.entries) levels.set(id, 1 + (levels.get(log.parentOf(id) ?? "") ?? 0));
    const deepest = [...levels.values()].reduce((most, level) => Math.max(most, level), 0);
    if (deepest > MAX_LEVELS) {
      throw new CommandError(`The session is ${deepest} entries deep, more than a frame can nest: use get_entries`, "too_large");
    }
    const nodes = new Map<string, Node>();
    const roots: Node[] = [];
    for (const entry of log.entries) {
      const made = toNode(entry, log.labels.get(entry.id));
      nodes.set(entry.id, made);
      const parentId = log.parentOf(entry.id);
      const parent = parentId === null ? undefined : nodes.get(parentId);
      (parent?.children ?? roots).push(made);
    }
    return { tree: roots, leafId: log.leafId };
  },
});

function toNode(entry: SessionEntry, label: string | undefined): Node {
  const message = entry.type === "message" ? entry.message : undefined;
  return {
    id: entry.id,
    type: entry.type,
    ...(message === undefined ? {} : { role: message.role, ...preview(message) }),
    ...(label === undefined ? {} : { label }),
    timestamp: timeOf(entry.timestamp),
    children: [],
  };
}

/** Other programs, and damage, leave times of other types. */
function timeOf(stored: unknown): string {
  if (typeof stored === "string") return stored;
  const at = new Date(typeof stored === "number" ? stored : Number.NaN);
  return Number.isNaN(at.getTime()) ? "" : at.toISOString();
}

function preview(message: { role: string; content?: unknown }): { text?: string } {
  const { content } = message;
  const text =
    typeof content === "string"
      ? content
      : Array.isArray(content)
        ? content.flatMap((block) => (block?.type === "text" && typeof block.text === "string" ? [block.text] : [])).join(" ")
        : "";
  // Taken apart only as far as it can be needed: a text may have megabytes.
  return text === "" ? {} : { text: [...text.slice(0, 2 * PREVIEW_LENGTH)].slice(0, PREVIEW_LENGTH).join("") };
}
