// The services Models and Credentials over MORTISE_HOME.
import {
  type Context,
  Credentials,
  defineExtension,
  defineService,
  Launch,
  Models,
  notice,
  Trust,
  watchPaths,
} from "mortise/extension";
import { AuthFile } from "./_auth-file.ts";
import { knownProviders } from "./_catalogue.ts";
import { ModelDiscovery } from "./_discovery-token.ts";
import { ModelsFiles } from "./_files.ts";
import { maskProgress, maskResults } from "./_mask.ts";
import { ModelRegistry } from "./_registry.ts";
import * as settings from "./_settings.ts";
import { Values } from "./_values.ts";

export default defineExtension({
  name: "models",
  contributes: [...Object.values(settings), maskResults, maskProgress],
  async setup(scope) {
    const launch = scope.ctx.use(Launch);
    const files = new ModelsFiles(launch.home, launch.cwd);
    const values = new Values(() => launch.env);
    scope.own(() => values.close(), "commands of models.yml");
    // Read here, because services are made synchronously.
    await files.load();
    let registry: ModelRegistry | undefined;
    const open = (ctx: Context) => {
      registry ??= new ModelRegistry(ctx, launch, files, values);
      return registry;
    };
    scope.add(
      defineService(Credentials, {
        create: (ctx) =>
          new AuthFile({
            home: launch.home,
            report: (level, message) => ctx.send(notice, { level, message, source: "credentials" }),
            otherSecrets: () => knownSecrets(launch, files, values),
          }),
      }),
      defineService(Models, { create: open }),
      defineService(ModelDiscovery, { create: open }),
    );
    const watch = watchPaths([files.user, files.project], () => void registry?.reload());
    scope.own(() => watch.close(), "watch of models.yml");
    const unsubscribe = scope.ctx.tryUse(Trust)?.onChange(() => void registry?.reload());
    if (unsubscribe) scope.own(unsubscribe, "watch of trust");
  },
});

/** Secrets that this process knows and that auth.json does not hold. */
function* knownSecrets(launch: Launch, files: ModelsFiles, values: Values): Generator<string> {
  if (launch.options.apiKey) yield launch.options.apiKey;
  for (const { keyNames } of Object.values(knownProviders)) for (const name of keyNames) yield launch.env[name] ?? "";
  for (const [name, value] of Object.entries(launch.env)) {
    if (value === undefined) continue;
    if (/_(?:API_KEY|AUTH_TOKEN)$/.test(name)) yield value;
    else if (/^(?:HTTPS?|ALL)_PROXY$/i.test(name)) yield* passwordsOf(value);
  }
  // Before they are used as well: the file may be shown first. Those of a project are its own until then.
  for (const { apiKey } of files.merged(false).providers.values()) yield values.peek(apiKey) ?? "";
  yield* values.secrets;
}

/** The password in an address as it is written and as it is sent; any text may come, with a scheme or without. */
function* passwordsOf(address: string): Generator<string> {
  const written = /^(?:[a-z][a-z0-9+.-]*:\/\/)?[^/:@]*:([^/]*)@/i.exec(address)?.[1];
  if (written === undefined) return;
  yield written;
  try {
    yield decodeURIComponent(written);
  } catch {
    // A per cent sign that stands for itself.
  }
}
