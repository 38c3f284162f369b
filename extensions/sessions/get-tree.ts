import { defineCommand, type SessionEntry, z } from "mortise/extension";

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
  example: { params: {}, result: { tree: [], leafId: null } },
  run(ctx) {
    const { log } = ctx.conversation;
    const nodes = new Map<string, Node>();
    const roots: Node[] = [];
    for (const entry of log.entries) {
      const made = toNode(entry, log.labels.get(entry.id));
      nodes.set(entry.id, made);
      const parent = entry.parentId === null ? undefined : nodes.get(entry.parentId);
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
    timestamp: entry.timestamp,
    children: [],
  };
}

function preview(message: { role: string; content?: unknown }): { text?: string } {
  const { content } = message;
  const text =
    typeof content === "string"
      ? content
      : Array.isArray(content)
        ? content.flatMap((block) => (block?.type === "text" && typeof block.text === "string" ? [block.text] : [])).join(" ")
        : "";
  return text === "" ? {} : { text: [...text].slice(0, 200).join("") };
}
