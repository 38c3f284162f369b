import { defineCommand, z } from "mortise/extension";
import { RpcRuns } from "./_rpc-runs.ts";

export default defineCommand({
  name: "abort_bash",
  group: "Bash",
  summary: "Ends every running `bash` command; succeeds when none is running",
  params: z.object({}),
  concurrency: "serial",
  sealed: true,
  source: "both",
  example: { params: {} },
  run(ctx) {
    ctx.use(RpcRuns).abort();
  },
});
