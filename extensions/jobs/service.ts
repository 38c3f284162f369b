import { defineService, Jobs } from "mortise/extension";
import { JobTable } from "./_table.ts";

export default defineService(Jobs, {
  create(ctx) {
    const jobs = new JobTable(ctx);
    ctx.scope.own(() => jobs.close(), "jobs");
    return jobs;
  },
});
