import { defineService } from "mortise/extension";
import { RpcRuns } from "./_rpc-runs.ts";

export default defineService(RpcRuns, {
  create() {
    const running = new Set<AbortController>();
    return {
      begin() {
        const controller = new AbortController();
        running.add(controller);
        return { signal: controller.signal, done: () => void running.delete(controller) };
      },
      abort() {
        for (const controller of running) controller.abort();
      },
    };
  },
});
