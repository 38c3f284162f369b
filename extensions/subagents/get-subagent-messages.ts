import { CommandError, defineCommand, readFrom, Subagents, z } from "mortise/extension";

export default defineCommand({
  name: "get_subagent_messages",
  group: "State",
  summary: "Reads the session file of a subagent from a byte on; `nextByte` is where the next call goes on.",
  concurrency: "serial",
  source: "both",
  params: z.object({
    agentId: z.string().optional(),
    subagentId: z.string().optional().describe("The same as agentId"),
    sessionFile: z.string().optional().describe("Of a subagent of this process"),
    fromByte: z.unknown().meta({ type: "number", description: "0 when left out" }).optional(),
  }),
  result: z.object({
    sessionFile: z.string(),
    fromByte: z.number().describe("Where reading really began"),
    nextByte: z.number(),
    reset: z.boolean().describe("The file was shorter than fromByte, so reading began anew"),
    entries: z.array(z.looseObject({ type: z.string() })),
    messages: z.array(z.looseObject({ role: z.string() })),
  }),
  example: {
    params: { agentId: "Explore", fromByte: 0 },
    result: { sessionFile: "/home/ada/s/Explore.jsonl", fromByte: 0, nextByte: 0, reset: false, entries: [], messages: [] },
    failure: "get_subagent_messages requires subagentId or sessionFile",
  },
  run(ctx, { agentId, subagentId, sessionFile, fromByte }) {
    if (subagentId && agentId && subagentId !== agentId) {
      throw new CommandError(`subagentId and agentId name two: ${subagentId}, ${agentId}. Send one of them`, "invalid_params");
    }
    const file = ctx.use(Subagents).sessionFile({ id: subagentId || agentId, file: sessionFile });
    return readFrom(file, fromByte) as Promise<never>;
  },
});
