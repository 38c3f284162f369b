import { defineCommand, z } from "mortise/extension";

export default defineCommand({
  name: "abort_retry",
  group: "Retry",
  summary: "Ends a wait between retries; succeeds when there is none as well.",
  concurrency: "serial",
  sealed: true,
  source: "both",
  params: z.object({}),
  example: { params: {} },
  run(ctx) {
    ctx.conversation.abortRetry();
  },
});
