import { CommandError, type Context, defineCommand, Model, Models, z } from "mortise/extension";
import { applyModel, wantedLevel } from "./_apply.ts";
import { ModelDiscovery } from "./_discovery-token.ts";
import { isEnabled } from "./_enabled.ts";

const command = defineCommand({
  name: "set_model",
  group: "Model",
  summary: "Chooses the model of the conversation, from its next request on; no settings file is written.",
  // Found at once it is chosen at once; only a miss waits for servers to list their models.
  concurrency: "concurrent",
  source: "both",
  params: z.object({ provider: z.string(), modelId: z.string() }),
  result: Model,
  example: {
    params: { provider: "offline", modelId: "echo" },
    failure: "Model not found: provider/model",
  },
  run(ctx, { provider, modelId }) {
    const model = usable(ctx, provider, modelId);
    if (model) return choose(ctx, model);
    const discovery = ctx.tryUse(ModelDiscovery);
    discovery?.tellUnspoken();
    if (discovery === undefined) throw refusal(ctx, provider, modelId);
    const asked = discovery.isDiscovering ? discovery.settled() : discovery.askAgain(provider);
    return asked.then(() => {
      const late = usable(ctx, provider, modelId);
      if (late) return choose(ctx, late);
      throw refusal(ctx, provider, modelId);
    });
  },
});

function usable(ctx: Context, provider: string, id: string): Model | undefined {
  return ctx
    .use(Models)
    .available()
    .find((model) => model.provider === provider && model.id === id && isEnabled(ctx, model));
}

function choose(ctx: Context, model: Model): Model {
  applyModel(ctx, model);
  return model;
}

function refusal(ctx: Context, provider: string, id: string): CommandError {
  const models = ctx.use(Models);
  const known = models.find(provider, id);
  if (known && isEnabled(ctx, known) && !models.hasKey(provider)) {
    return new CommandError(`No API key for ${provider}/${id}`, "not_found");
  }
  return new CommandError(`Model not found: ${provider}/${id}`, "not_found");
}

export default [command, wantedLevel];
