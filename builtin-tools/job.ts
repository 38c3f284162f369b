import { defineTool, type JobInfo, Jobs, ToolError, textResult, z } from "mortise/extension";

const DEFAULT_SECONDS = 60;
const MAX_SECONDS = 3600;

const params = z.object({
  op: z
    .enum(["list", "wait", "cancel"])
    .describe("list: all jobs; wait: until one of them ends, with its result; cancel: end them"),
  ids: z.array(z.string().min(1)).optional().describe("Jobs, by id; all without a result so far when left out (wait only)"),
  timeout: z.number().optional().describe(`wait: seconds at most, ${DEFAULT_SECONDS} by default, up to ${MAX_SECONDS}`),
});
type Params = z.infer<typeof params>;

export default defineTool<Params>({
  name: "job",
  description: [
    "Look after work that goes on in the background.",
    "The result of a job comes by itself when it has ended: wait only when there is nothing else to do.",
  ].join("\n"),
  promptSnippet: "Wait for, list and cancel background jobs",
  params,
  interruptible: true,
  readOnly: ({ op }) => op !== "cancel",
  available: ({ context }) => context?.tryUse(Jobs)?.allowed(context.conversation) === true,
  async run(ctx, { op, ids, timeout }) {
    const jobs = ctx.use(Jobs);
    const { conversation } = ctx;
    const own = jobs.list(conversation);
    const unknown = ids?.filter((id) => !own.some((job) => job.id === id)) ?? [];
    if (unknown.length > 0) throw new ToolError(`No job with id: ${unknown.join(", ")}. There are: ${namesOf(own)}`);
    if (op === "list") return present(own);
    if (op === "cancel") {
      if (ids === undefined || ids.length === 0) throw new ToolError("Cannot cancel: name the jobs in ids");
      await Promise.all(ids.map((id) => jobs.cancel(conversation, id)));
    } else {
      const waited = ids ?? own.filter((job) => job.status === "running" || !job.delivered).map((job) => job.id);
      if (waited.length === 0) return textResult("No background job is running", { jobs: [] });
      const seconds = Math.min(MAX_SECONDS, Math.max(0, timeout ?? DEFAULT_SECONDS));
      await jobs.whenAnyEnded(waited, AbortSignal.any([ctx.signal, AbortSignal.timeout(Math.ceil(seconds * 1000))]));
      ids = waited;
    }
    const taken = ids.map((id) => jobs.take(conversation, id)).filter((job) => job !== undefined);
    return present(taken);
  },
});

function present(list: readonly JobInfo[]) {
  const text = list.map((job) => {
    const said = job.resultText ?? job.errorText;
    return `${job.id} (${job.label}): ${job.status}${said === undefined ? "" : `\n${said.trim() || "(no output)"}`}`;
  });
  return textResult(text.length > 0 ? text.join("\n\n") : "No background jobs", { jobs: list });
}

function namesOf(list: readonly JobInfo[]): string {
  return list.length > 0 ? list.map((job) => job.id).join(", ") : "none";
}
