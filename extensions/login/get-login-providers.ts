import { defineCommand, Models, z } from "mortise/extension";

export default defineCommand({
  name: "get_login_providers",
  group: "Login",
  summary: "The providers one can log in to, and whether a credential of each is known already.",
  concurrency: "serial",
  source: "both",
  params: z.object({}),
  result: z.object({
    providers: z.array(z.object({ id: z.string(), name: z.string(), available: z.boolean(), authenticated: z.boolean() })),
  }),
  example: {
    params: {},
    result: { providers: [{ id: "anthropic", name: "Anthropic", available: true, authenticated: false }] },
  },
  run(ctx) {
    const models = ctx.tryUse(Models);
    const providers = ctx.registry.list("login flow").map(({ definition }) => ({
      id: definition.name,
      name: definition.displayName,
      // Without dialogs nobody can be asked.
      available: ctx.hasUI,
      authenticated: models?.hasKey(definition.name) ?? false,
    }));
    return { providers };
  },
});
