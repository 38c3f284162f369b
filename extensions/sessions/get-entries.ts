import { CommandError, defineCommand, type SessionEntry, z } from "mortise/extension";

export default defineCommand({
  name: "get_entries",
  group: "Session",
  summary: "Entries of the session log in file order, all of them or those after one.",
  concurrency: "serial",
  source: "mortise",
  params: z.object({ since: z.string().optional().describe("Id of the last entry the host has") }),
  result: z.object({ entries: z.array(z.custom<SessionEntry>().meta({ type: "object" })), leafId: z.string().nullable() }),
  example: {
    params: { since: "a1b2c3d4" },
    result: { entries: [], leafId: "a1b2c3d4" },
    failure: "Unknown entries cursor: ffffffff",
  },
  run(ctx, { since }) {
    const { entries, leafId } = ctx.conversation.log;
    if (since === undefined) return { entries: [...entries], leafId };
    const index = entries.findLastIndex((entry) => entry.id === since);
    if (index < 0) throw new CommandError(`Unknown entries cursor: ${since}`, "unknown_since");
    return { entries: entries.slice(index + 1), leafId };
  },
});
