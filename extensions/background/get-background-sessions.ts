import { defineCommand, z } from "mortise/extension";
import { Background } from "./_token.ts";

const session = z.object({
  sessionId: z.string(),
  sessionFile: z.string().optional().describe("Absent for sessions that are kept in memory"),
  title: z.string().describe("The session's name, else the beginning of its first prompt"),
  detachedAt: z.number().describe("Unix milliseconds"),
  streaming: z.boolean().describe("False when only its jobs go on"),
  stopping: z.boolean().describe("It is being ended and is gone in a moment"),
});

export default defineCommand({
  name: "get_background_sessions",
  group: "Background conversations",
  summary: "Lists the conversations that go on without the host, oldest first.",
  concurrency: "serial",
  source: "000",
  params: z.object({}),
  result: z.object({ sessions: z.array(session) }),
  example: {
    params: {},
    result: {
      sessions: [
        {
          sessionId: "0193",
          sessionFile: "/home/ada/.mortise/sessions/--home-ada--/2026-01-01_0193.jsonl",
          title: "Port the parser",
          detachedAt: 1764495420000,
          streaming: true,
          stopping: false,
        },
      ],
    },
  },
  run: (ctx) => ({ sessions: ctx.use(Background).list() }),
});
