// `pi.registerProvider`: models of an extension, with its own stream function, another provider's wire, or another address of
// models we know.
import {
  type Context,
  type Credential,
  defineLoginFlow,
  defineProvider,
  Launch,
  type LoginContext,
  type Model,
  Models,
  ProviderError,
  type ProviderEvent,
  type ProviderRequest,
} from "mortise/extension";
import { fromForeignStream, toForeignContext, toForeignOptions } from "./_pi-stream.ts";
import type { Runtime } from "./_runtime.ts";
import { isObject } from "./_schema.ts";

type Config = Record<string, unknown>;
type Definitions = Parameters<Runtime["scope"]["add"]>;

/**
 * The contributions of one `registerProvider` call.
 *
 * @throws {Error} when the configuration cannot work; names the provider and what is missing.
 */
export function providerDefinitions(runtime: Runtime, name: string, config: unknown): Definitions {
  if (name === "" || !isObject(config)) throw new Error("registerProvider needs a name and a configuration");
  const models = Array.isArray(config["models"])
    ? config["models"].map((model) => toModel(name, config, model))
    : movedModels(runtime, name, config);
  const wires = new Set(models.map((model) => model.api));
  const providers = [...wires].map((wire) => {
    const spoken = models.filter((model) => model.api === wire);
    return toProvider(runtime, name, config, wire, spoken);
  });
  return isObject(config["oauth"]) ? [...providers, toLoginFlow(name, config["oauth"])] : providers;
}

/** Known models of the provider under another address or with other headers. */
function movedModels(runtime: Runtime, name: string, config: Config): Model[] {
  const { baseUrl } = config;
  if (typeof baseUrl !== "string" && !isObject(config["headers"]) && !isObject(config["oauth"])) {
    throw new Error(`Provider "${name}" has neither models nor a baseUrl`);
  }
  const known = runtime.scope.ctx
    .use(Models)
    .all()
    .filter((model) => model.provider === name);
  return known.map((model) => ({ ...model, ...(typeof baseUrl === "string" ? { baseUrl } : {}) }));
}

function toModel(provider: string, config: Config, value: unknown): Model {
  if (!isObject(value) || typeof value["id"] !== "string") throw new Error(`A model of provider "${provider}" has no id`);
  const api = value["api"] ?? config["api"];
  const baseUrl = value["baseUrl"] ?? config["baseUrl"];
  if (typeof api !== "string") throw new Error(`Model "${value["id"]}" of provider "${provider}" has no api`);
  if (typeof baseUrl !== "string" && typeof config["streamSimple"] !== "function") {
    throw new Error(`Model "${value["id"]}" of provider "${provider}" has no baseUrl`);
  }
  const cost = isObject(value["cost"]) ? value["cost"] : {};
  const price = (key: string): number => (typeof cost[key] === "number" ? cost[key] : 0);
  const reasoning = value["reasoning"] === true;
  return {
    id: value["id"],
    name: typeof value["name"] === "string" ? value["name"] : value["id"],
    api,
    provider,
    baseUrl: typeof baseUrl === "string" ? baseUrl : "",
    reasoning,
    input: Array.isArray(value["input"]) && value["input"].includes("image") ? ["text", "image"] : ["text"],
    cost: { input: price("input"), output: price("output"), cacheRead: price("cacheRead"), cacheWrite: price("cacheWrite") },
    ...size("contextWindow", value["contextWindow"]),
    ...size("maxTokens", value["maxTokens"]),
    ...(reasoning ? { thinking: { mode: modeOf(api), efforts: ["minimal", "low", "medium", "high"] } } : {}),
  };
}

function size(key: string, value: unknown): Record<string, number> {
  return typeof value === "number" && value > 0 ? { [key]: Math.floor(value) } : {};
}

function modeOf(api: string): "budget" | "effort" {
  return api.startsWith("anthropic") ? "budget" : "effort";
}

/** Models carry an API name of their own, so that the requests come here and not to the provider whose wire they use. */
function toProvider(runtime: Runtime, name: string, config: Config, wire: string, models: readonly Model[]) {
  const api = `${name}/${wire}`;
  const { streamSimple } = config;
  return defineProvider({
    name: api,
    summary: `Provider "${name}" of the extension ${runtime.owner}`,
    needsKey: isObject(config["oauth"]) && config["apiKey"] === undefined,
    models: models.map((model) => ({ ...model, api })),
    stream: (request, ctx) => {
      const sent = { ...request, model: { ...request.model, api: wire }, ...credential(ctx, config, request) };
      return typeof streamSimple === "function"
        ? ownStream(runtime, ctx, streamSimple as (...args: unknown[]) => unknown, sent)
        : borrowedStream(ctx, wire, sent);
    },
  });
}

async function* ownStream(
  runtime: Runtime,
  ctx: Context,
  streamSimple: (...args: unknown[]) => unknown,
  request: ProviderRequest,
): AsyncGenerator<ProviderEvent> {
  try {
    const context = toForeignContext(request, runtime.traits.promptBlocks);
    const stream = await runtime.run(ctx, () => streamSimple(request.model, context, toForeignOptions(request)));
    if (!isObject(stream) || !(Symbol.asyncIterator in stream)) throw new Error("streamSimple gave no stream of events");
    yield* fromForeignStream(stream as unknown as AsyncIterable<unknown>);
  } catch (error) {
    const aborted = request.signal.aborted;
    yield {
      type: "error",
      error: new ProviderError(error instanceof Error ? error.message : String(error), aborted ? "aborted" : "fatal"),
    };
  }
}

async function* borrowedStream(ctx: Context, wire: string, request: ProviderRequest): AsyncGenerator<ProviderEvent> {
  const entry = ctx.registry.get("provider", wire);
  if (entry === undefined) {
    const names = ctx.registry.list("provider").map((each) => each.name);
    yield { type: "error", error: new ProviderError(`No provider speaks "${wire}": there are ${names.join(", ")}`, "fatal") };
    return;
  }
  const release = entry.scope.lease();
  try {
    yield* entry.definition.stream(request, ctx);
  } finally {
    release();
  }
}

/** The key and headers of the configuration, over what was resolved for the request. */
function credential(
  ctx: Context,
  config: Config,
  request: ProviderRequest,
): { apiKey?: string; headers?: Record<string, string> } {
  const configured = typeof config["apiKey"] === "string" ? keyOf(ctx, config["apiKey"]) : undefined;
  const apiKey = configured ?? request.apiKey;
  const headers = {
    ...request.headers,
    ...stringsOf(config["headers"], ctx),
    ...(config["authHeader"] === true && apiKey !== undefined ? { Authorization: `Bearer ${apiKey}` } : {}),
  };
  return {
    ...(apiKey === undefined ? {} : { apiKey }),
    ...(Object.keys(headers).length === 0 ? {} : { headers }),
  };
}

/** The name of an environment variable, with or without `$`, or the key itself. */
function keyOf(ctx: Context, value: string): string {
  const env = ctx.tryUse(Launch)?.env ?? process.env;
  return env[value.replace(/^\$\{?([A-Za-z_]\w*)\}?$/, "$1")] ?? value;
}

function stringsOf(value: unknown, ctx: Context): Record<string, string> {
  if (!isObject(value)) return {};
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, each]) => (typeof each === "string" ? [[key, keyOf(ctx, each)]] : [])),
  );
}

type OAuth = Extract<Credential, { type: "oauth" }>;

function toLoginFlow(name: string, oauth: Config) {
  const { login, refreshToken, getApiKey } = oauth;
  if (typeof login !== "function") throw new Error(`The oauth part of provider "${name}" has no login function`);
  return defineLoginFlow({
    name,
    displayName: typeof oauth["name"] === "string" ? oauth["name"] : name,
    run: async (ctx) => toCredential(name, await login(callbacksOf(ctx))),
    ...(typeof refreshToken === "function"
      ? { refresh: async (current) => toCredential(name, await refreshToken(current)) }
      : {}),
    ...(typeof getApiKey === "function" ? { apiKey: (credential) => String(getApiKey(credential)) } : {}),
  });
}

function callbacksOf(ctx: LoginContext): Record<string, unknown> {
  const ask = (question: unknown) => {
    const { message, placeholder } = isObject(question) ? question : { message: question, placeholder: undefined };
    return ctx.prompt({ title: String(message ?? ""), ...(typeof placeholder === "string" ? { placeholder } : {}) });
  };
  return {
    signal: ctx.signal,
    onAuth: (page: unknown) => {
      const { url, instructions } = isObject(page) ? page : { url: page, instructions: undefined };
      ctx.openUrl({
        url: String(url),
        credential: "oauth",
        ...(typeof instructions === "string" ? { instructions } : {}),
      });
    },
    onPrompt: ask,
    onManualCodeInput: () => ask({ message: "Paste the code or the address you were sent to" }),
    onProgress: (text: unknown) => ctx.progress(String(text)),
  };
}

function toCredential(name: string, value: unknown): OAuth {
  if (!isObject(value) || typeof value["access"] !== "string") throw new Error(`Login of "${name}" gave no access token`);
  const { access, refresh, expires, ...extra } = value;
  return {
    ...extra,
    type: "oauth",
    access,
    ...(typeof refresh === "string" ? { refresh } : {}),
    ...(typeof expires === "number" ? { expires } : {}),
  };
}
