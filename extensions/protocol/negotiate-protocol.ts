import { CommandError, defineCommand, Framing, z } from "mortise/extension";

/** The response itself is still encoded as v1 (002_…, "Transport and Framing"). */
export default defineCommand({
  name: "negotiate_protocol",
  group: "Protocol",
  summary: "Switches stdout to protocol v2: frames over 1 MiB come as uninterrupted `rpc_chunk` sequences.",
  concurrency: "serial",
  sealed: true,
  source: "002",
  params: z.object({ protocolVersion: z.unknown().optional().describe("2") }),
  result: z.object({ protocolVersion: z.literal(2) }),
  example: {
    params: { protocolVersion: 2 },
    result: { protocolVersion: 2 },
    failure: "Unsupported RPC protocol version: 3",
  },
  run(ctx, { protocolVersion }) {
    if (protocolVersion !== 2) {
      throw new CommandError(`Unsupported RPC protocol version: ${String(protocolVersion).slice(0, 100)}`, "invalid_params");
    }
    ctx.use(Framing).negotiate(2);
    return { protocolVersion: 2 as const };
  },
});
