import { defineSlashCommand, Jobs } from "mortise/extension";

export default defineSlashCommand({
  name: "jobs",
  description: "Show the background jobs of this conversation, or cancel one",
  argumentHint: "[cancel <id>]",
  subcommands: [{ name: "cancel", usage: "cancel <id>", description: "End a job" }],
  source: "builtin",
  concurrency: "concurrent",
  async run(ctx, args) {
    const jobs = ctx.use(Jobs);
    const { conversation } = ctx;
    const [verb, id] = args.split(/\s+/);
    if (verb === "cancel" && id) {
      const done = await jobs.cancel(conversation, id);
      return ctx.output(done ? `Cancelled ${id}` : `No running job with id: ${id}`);
    }
    if (verb) return ctx.output("Usage: /jobs [cancel <id>]");
    const list = jobs.list(conversation);
    if (list.length === 0) return ctx.output("No background jobs");
    const now = Date.now();
    ctx.output(
      list
        .map(({ id: job, type, status, label, startTime, endTime = now }) => {
          return `${job}  ${type}  ${status}  ${Math.round((endTime - startTime) / 1000)} s  ${label}`;
        })
        .join("\n"),
    );
  },
});
