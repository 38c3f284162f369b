import { aborting, defineHook } from "mortise/extension";
import { RpcRuns } from "./_rpc-runs.ts";

/** `abort` ends the host's own commands of the conversation as well. */
export default defineHook(aborting, ({ conversation }, ctx) => ctx.use(RpcRuns).abort(conversation.id));
