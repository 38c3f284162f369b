// With which credential a provider is asked (agent-semantics §2.8). Order: --api-key, the key that models.yml pins, auth.json, the
// environment. A pinned key is for the address beside it: a key for the service itself must not go there.
import {
  type Context,
  type Credential,
  Credentials,
  errorMessage,
  type Launch,
  type LoginFlowDefinition,
  type Model,
  ProviderError,
} from "mortise/extension";
import { knownProviders } from "./_catalogue.ts";
import type { ConfiguredProvider } from "./_config.ts";
import { select } from "./_selectors.ts";
import type { Values } from "./_values.ts";

/** A token that expires within this time is renewed before it is used: a long answer must not outlive it. */
const EXPIRY_MARGIN_MS = 60_000;

export interface KeySources {
  readonly ctx: Context;
  readonly launch: Launch;
  readonly values: Values;
  /** What models.yml says about a provider. */
  configured(provider: string): ConfiguredProvider | undefined;
  models(): readonly Model[];
}

export class Keys {
  readonly #from: KeySources;

  constructor(from: KeySources) {
    this.#from = from;
  }

  isKeyless(provider: string, api: string | undefined): boolean {
    if (this.#from.configured(provider)?.auth === "none") return true;
    return api !== undefined && this.#from.ctx.registry.get("provider", api)?.definition.needsKey === false;
  }

  /** True when there is a credential, as far as can be said without running a command. */
  has(provider: string): boolean {
    if (this.#commandLineKey(provider) !== undefined) return true;
    if (this.#from.values.isSet(this.#from.configured(provider)?.apiKey)) return true;
    return this.#from.ctx.tryUse(Credentials)?.get(provider) !== undefined || this.#environmentKey(provider) !== undefined;
  }

  /** @throws {ProviderError} kind auth when a command fails or a login cannot be renewed. */
  async resolve(provider: string): Promise<string | undefined> {
    const given = this.#commandLineKey(provider);
    if (given !== undefined) return given;
    const pinned = this.#from.configured(provider)?.apiKey;
    if (pinned !== undefined && this.#from.values.isSet(pinned)) return this.#from.values.resolve(pinned);
    const stored = this.#from.ctx.tryUse(Credentials)?.get(provider);
    return stored === undefined ? this.#environmentKey(provider) : this.#stored(provider, stored);
  }

  /** Renews a login that the service refused. False when there is none in use, or when it cannot be renewed. */
  async renew(provider: string): Promise<boolean> {
    if (this.#commandLineKey(provider) !== undefined) return false;
    if (this.#from.values.isSet(this.#from.configured(provider)?.apiKey)) return false;
    if (this.#from.ctx.tryUse(Credentials)?.get(provider)?.type !== "oauth") return false;
    try {
      await this.#renew(provider, this.#flow(provider));
      return true;
    } catch {
      // The service's refusal says more than a second failure would.
      return false;
    }
  }

  /** @param file the user's models.yml. */
  missing(provider: string, file: string): ProviderError {
    const text = [
      `No API key found for ${provider}.`,
      "",
      `Log in with the login command or /login ${provider}, set the environment variable ${variablesOf(provider)[0]}, start with --api-key, or put "apiKey" under providers.${provider} in ${file}`,
    ].join("\n");
    return new ProviderError(text, "auth");
  }

  async #stored(provider: string, credential: Credential): Promise<string> {
    const flow = this.#flow(provider);
    const current = isExpired(credential) ? await this.#renew(provider, flow) : credential;
    return flow?.apiKey?.(current) ?? (current.type === "api_key" ? current.key : current.access);
  }

  async #renew(provider: string, flow: LoginFlowDefinition | undefined): Promise<Credential> {
    if (!flow?.refresh)
      throw new ProviderError(`The login of ${provider} has expired. Log in again with login or /login`, "auth");
    try {
      const renew = flow.refresh.bind(flow);
      const credentials = this.#from.ctx.use(Credentials);
      return await credentials.refresh(provider, (current) => renew(current, AbortSignal.timeout(30_000)));
    } catch (error) {
      const text = `Cannot renew the login of ${provider}: ${errorMessage(error)}. Log in again with login or /login`;
      throw new ProviderError(text, "auth");
    }
  }

  #flow(provider: string): LoginFlowDefinition | undefined {
    return this.#from.ctx.registry.get("login flow", provider)?.definition;
  }

  /** `--api-key` belongs to the provider of `--model`; without one its form tells whose it is. */
  #commandLineKey(provider: string): string | undefined {
    const { apiKey, provider: named, model } = this.#from.launch.options;
    if (!apiKey) return undefined;
    const owner = named ?? (model !== undefined ? ownerOf(model, this.#from.models()) : undefined) ?? ownerOfKey(apiKey);
    return owner === provider ? apiKey : undefined;
  }

  #environmentKey(provider: string): string | undefined {
    for (const name of variablesOf(provider)) {
      const value = this.#from.launch.env[name]?.trim();
      if (value) return value;
    }
    return undefined;
  }
}

function variablesOf(provider: string): readonly string[] {
  return knownProviders[provider]?.keyNames ?? [`${provider.toUpperCase().replace(/[^A-Z0-9]/g, "_")}_API_KEY`];
}

function isExpired(credential: Credential): boolean {
  return credential.type === "oauth" && credential.expires !== undefined && credential.expires - EXPIRY_MARGIN_MS < Date.now();
}

function ownerOf(selector: string, models: readonly Model[]): string | undefined {
  const selected = select(selector, [models]);
  if (selected) return selected.model.provider;
  const slash = selector.indexOf("/");
  return slash > 0 ? selector.slice(0, slash) : undefined;
}

function ownerOfKey(key: string): string | undefined {
  if (key.startsWith("sk-ant-")) return "anthropic";
  if (key.startsWith("sk-or-")) return "openrouter";
  return key.startsWith("sk-") ? "openai" : undefined;
}
