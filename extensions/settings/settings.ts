// Layered configuration in YAML files.
import { defineExtension, defineService, Launch, Settings, z } from "mortise/extension";
import { Sources } from "./_sources.ts";
import { SettingsStore } from "./_store.ts";

const Overlays = z.array(z.string()).catch([]);

export default defineExtension({
  name: "settings",
  async setup(scope) {
    const { home, cwd, options } = scope.ctx.use(Launch);
    const sources = new Sources(home, cwd, Overlays.parse(options["config"] ?? []));
    // Read here, because services are made synchronously.
    await sources.load();
    scope.add(defineService(Settings, { create: (ctx) => new SettingsStore(ctx, cwd, sources) }));
  },
});
