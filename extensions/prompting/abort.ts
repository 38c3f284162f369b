import { defineCommand, z } from "mortise/extension";

/** Queued messages stay; leftover steering starts a run of its own afterwards (protocol facts §3.5). */
export default defineCommand({
  name: "abort",
  group: "Prompting",
  summary: "Ends the run, its tools, a retry wait, a compaction and running `bash` commands; succeeds when idle as well.",
  concurrency: "serial",
  sealed: true,
  source: "both",
  params: z.object({}),
  example: { params: {} },
  run: (ctx) => ctx.conversation.abort("Interrupted by user"),
});
