import { createToken } from "mortise/extension";

/** The RPC `bash` runs of this daemon, so that `abort_bash` ends them and nothing else. */
export interface RpcRuns {
  /** Aborted by `abort`; call `done` when the run has ended. */
  begin(conversation: string): { signal: AbortSignal; done(): void };
  /** Ends the runs of one conversation, or all. */
  abort(conversation?: string): void;
}

export const RpcRuns = createToken<RpcRuns>("rpc bash runs");
