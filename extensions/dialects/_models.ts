// `ctx.modelRegistry`: the families' view of our model services.
import { type Context, Credentials, errorMessage, type Model, Models } from "mortise/extension";
import { isObject } from "./_schema.ts";

/** Builds the registry object for one context. Reading works detached. */
export function createModelRegistry(ctx: Context): Record<string, unknown> {
  const models = (): Models => ctx.use(Models);
  const getApiKey = async (model: unknown): Promise<string | undefined> => {
    const known = toKnownModel(ctx, model);
    return known === undefined ? undefined : (await models().key(known)).apiKey;
  };
  return {
    find: (provider: string, id: string) => models().find(provider, id),
    getAvailable: () => models().available(),
    getAll: () => models().all(),
    hasConfiguredAuth: (model: unknown) => hasKey(ctx, model),
    getApiKey,
    getApiKeyForProvider: async (provider: string) => {
      const model = models()
        .all()
        .find((each) => each.provider === provider);
      return model === undefined ? undefined : getApiKey(model);
    },
    getApiKeyAndHeaders: async (model: unknown) => {
      const known = toKnownModel(ctx, model);
      if (known === undefined) return { ok: false, error: "Model not found" };
      try {
        const key = await models().key(known);
        return { ok: true, apiKey: key.apiKey, headers: key.headers };
      } catch (error) {
        return { ok: false, error: errorMessage(error) };
      }
    },
    isUsingOAuth: (model: unknown) =>
      isObject(model) && ctx.tryUse(Credentials)?.get(String(model["provider"]))?.type === "oauth",
    getError: () => undefined,
    refresh: () => models().refresh(),
  };
}

function hasKey(ctx: Context, model: unknown): boolean {
  const provider = isObject(model) ? model["provider"] : model;
  return typeof provider === "string" && ctx.use(Models).hasKey(provider);
}

/** The catalogue's model behind what an extension gives: a model, or `{provider, id}`. */
export function toKnownModel(ctx: Context, model: unknown): Model | undefined {
  if (!isObject(model) || typeof model["provider"] !== "string" || typeof model["id"] !== "string") return undefined;
  return ctx.use(Models).find(model["provider"], model["id"]);
}

/** omp's `ctx.models`: list, current, resolve and family. */
export function createModelQuery(ctx: Context): Record<string, unknown> {
  return {
    list: () => ctx.use(Models).available(),
    current: () => ctx.conversation.selection.model,
    resolve: (selector: string) => ctx.use(Models).resolve(selector)?.model,
    family: (model: unknown) => (isObject(model) ? familyOf(String(model["id"])) : ""),
  };
}

/** The first word of an id without its vendor: `claude`, `gpt`, `gemini`. */
function familyOf(id: string): string {
  return (id.split("/").at(-1) ?? id).split(/[-_.:\d]/)[0]?.toLowerCase() ?? "";
}
