import { aborting, defineCommand, defineHook, defineService, z } from "mortise/extension";
import { runLogin } from "./_login.ts";
import { createLoginRuns, LoginRuns } from "./_runs.ts";

const login = defineCommand({
  name: "login",
  group: "Login",
  summary: "Logs in to a provider by dialogs with the host, and stores the credential; abort cancels it.",
  concurrency: "concurrent",
  source: "both",
  params: z.object({ providerId: z.string() }),
  result: z.object({ providerId: z.string() }),
  example: {
    params: { providerId: "anthropic" },
    result: { providerId: "anthropic" },
    failure: "Unknown OAuth provider: nobody",
  },
  async run(ctx, { providerId }) {
    await runLogin(ctx, providerId);
    return { providerId };
  },
});

export default [
  login,
  defineService(LoginRuns, { create: createLoginRuns }),
  defineHook(aborting, ({ reason }, ctx) => ctx.tryUse(LoginRuns)?.abortAll(reason)),
];
