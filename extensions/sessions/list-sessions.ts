import { defineCommand, Launch, listSessions, z } from "mortise/extension";

const PAGE = 50;

export default defineCommand({
  name: "list_sessions",
  group: "Session",
  summary: "Stored sessions, the last changed first; files are not read whole.",
  concurrency: "concurrent",
  source: "mortise",
  params: z.object({
    scope: z.enum(["project", "all"]).optional().describe("Sessions of the working directory (default), or of all"),
    cursor: z.string().optional().describe("`nextCursor` of the page before"),
    limit: z.number().int().min(1).max(500).optional().describe(`Sessions of one page, ${PAGE} by default`),
  }),
  result: z.object({
    sessions: z.array(
      z.object({
        file: z.string(),
        id: z.string(),
        cwd: z.string(),
        name: z.string().optional(),
        created: z.number().describe("Unix milliseconds"),
        modified: z.number().describe("Unix milliseconds"),
        size: z.number().int().describe("Bytes"),
        parentSession: z.string().optional(),
        firstMessage: z.string().optional(),
      }),
    ),
    nextCursor: z.string().optional(),
  }),
  example: { params: { scope: "project" }, result: { sessions: [] } },
  async run(ctx, { scope = "project", cursor, limit = PAGE }) {
    const { sessionsDir } = ctx.use(Launch);
    if (sessionsDir === undefined) return { sessions: [] };
    const cwd = scope === "project" ? ctx.conversation.cwd : undefined;
    const after = cursor === undefined ? undefined : decode(cursor);
    // One more says whether there is a further page.
    const found = await listSessions(sessionsDir, cwd, { after, limit: limit + 1 });
    const sessions = found.slice(0, limit);
    const last = sessions.at(-1);
    return { sessions, ...(last !== undefined && found.length > limit ? { nextCursor: encode(last.file) } : {}) };
  },
});

const encode = (file: string) => Buffer.from(file, "utf8").toString("base64url");
const decode = (cursor: string) => Buffer.from(cursor, "base64url").toString("utf8");
