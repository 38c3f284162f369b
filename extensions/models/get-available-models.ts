import { type Context, defineCommand, Model, Models, z } from "mortise/extension";
import { ModelDiscovery } from "./_discovery-token.ts";

export default defineCommand({
  name: "get_available_models",
  group: "Model",
  summary: "The models that can be used now: their provider is enabled and has a credential or needs none.",
  // Waits for servers that still list their models.
  concurrency: "concurrent",
  source: "both",
  params: z.object({}),
  result: z.object({ models: z.array(Model) }),
  example: { params: {} },
  run(ctx) {
    const discovery = ctx.tryUse(ModelDiscovery);
    discovery?.tellUnspoken();
    if (discovery?.isDiscovering) return discovery.settled().then(() => listing(ctx));
    // Not waited for: the next call shows what it brings.
    void discovery?.askAgain();
    return listing(ctx);
  },
});

function listing(ctx: Context): { models: Model[] } {
  return { models: ctx.use(Models).available() };
}
