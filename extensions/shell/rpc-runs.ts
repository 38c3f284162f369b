import { defineService } from "mortise/extension";
import { RpcRuns } from "./_rpc-runs.ts";

export default defineService(RpcRuns, {
  create() {
    const running = new Map<AbortController, string>();
    return {
      begin(conversation) {
        const controller = new AbortController();
        running.set(controller, conversation);
        return { signal: controller.signal, done: () => void running.delete(controller) };
      },
      abort(conversation) {
        for (const [controller, owner] of running) if (conversation === undefined || owner === conversation) controller.abort();
      },
    };
  },
});
