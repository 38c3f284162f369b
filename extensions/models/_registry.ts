// The Models service: which models exist and which can be used.
// Order of a model's values: catalogue < contributed by a provider < discovered < models.yml.
import {
  type Context,
  errorMessage,
  type Launch,
  type Model,
  type Models,
  notice,
  ProviderError,
  type ResolvedKey,
  type ThinkingLevel,
  Transport,
  Trust,
} from "mortise/extension";
import { catalogue, knownProviders } from "./_catalogue.ts";
import { type ConfiguredProvider, complete, type ModelsFile, override } from "./_config.ts";
import { discover } from "./_discovery.ts";
import type { ModelsFiles } from "./_files.ts";
import { Keys } from "./_keys.ts";
import { clampLevel, parseLevel } from "./_levels.ts";
import { fullName, type Selected, select, selectAll } from "./_selectors.ts";
import {
  defaultModel,
  defaultProvider,
  defaultThinkingLevel,
  disabledProviders,
  discoveryTimeoutMs,
  enabledModels,
} from "./_settings.ts";
import type { Values } from "./_values.ts";

export class ModelRegistry implements Models {
  readonly #ctx: Context;
  readonly #launch: Launch;
  readonly #files: ModelsFiles;
  readonly #values: Values;
  readonly #keys: Keys;
  readonly #told = new Set<string>();
  readonly #discovered = new Map<string, { source: string; models: Model[]; failed?: boolean }>();
  readonly #askingAgain = new Map<string, Promise<void>>();
  #discovery: Promise<void> | undefined;
  #all: { models: Model[]; byName: Map<string, Model> } | undefined;

  constructor(ctx: Context, launch: Launch, files: ModelsFiles, values: Values) {
    this.#ctx = ctx;
    this.#launch = launch;
    this.#files = files;
    this.#values = values;
    this.#keys = new Keys({
      ctx,
      launch,
      values,
      configured: (id) => this.#file().providers.get(id),
      models: () => this.#models().models,
    });
    ctx.scope.own(
      ctx.registry.onChange((diff) => {
        if (diff.touches("provider") || diff.touches("service", Trust.name)) this.#all = undefined;
      }),
      "watch of providers",
    );
    this.#tellProblems();
    this.startDiscovery();
  }

  all(): Model[] {
    return [...this.#models().models];
  }

  available(): Model[] {
    const disabled = new Set(this.#ctx.setting(disabledProviders));
    const usable = new Map<string, boolean>();
    return this.#models().models.filter((model) => {
      if (disabled.has(model.provider)) return false;
      const key = `${model.provider}\0${model.api}`;
      let answer = usable.get(key);
      if (answer === undefined) {
        const speaks = this.#ctx.registry.get("provider", model.api) !== undefined;
        answer = speaks && (this.#keys.isKeyless(model.provider, model.api) || this.#keys.has(model.provider));
        usable.set(key, answer);
      }
      return answer;
    });
  }

  find(provider: string, id: string): Model | undefined {
    return this.#models().byName.get(`${provider}/${id}`);
  }

  resolve(selector: string): Selected | undefined {
    return this.#select(selector, undefined);
  }

  scoped(): Model[] | undefined {
    const entries = this.#scope();
    return entries && selectAll(entries, this.#models().models).map(({ model }) => model);
  }

  initial(): Selected | undefined {
    const chosen = this.#chosen();
    if (chosen === undefined) return undefined;
    const asked = this.#launch.options.thinking === undefined ? undefined : parseLevel(this.#launch.options.thinking);
    if (this.#launch.options.thinking !== undefined && asked === undefined) {
      this.#tell(
        `Unknown thinking level "${this.#launch.options.thinking}": it is off, minimal, low, medium, high, xhigh or max`,
      );
    }
    const saved = this.#ctx.setting(defaultThinkingLevel) || undefined;
    const level = asked ?? chosen.thinkingLevel ?? saved ?? chosen.model.thinking?.defaultLevel ?? "medium";
    return { model: chosen.model, thinkingLevel: this.clamp(chosen.model, level) };
  }

  hasKey(provider: string): boolean {
    const model = this.#models().models.find((candidate) => candidate.provider === provider);
    return this.#keys.isKeyless(provider, model?.api) || this.#keys.has(provider);
  }

  async key(model: Model): Promise<ResolvedKey> {
    const { provider } = model;
    const configured = this.#file().providers.get(provider);
    const headers = await this.#headers({ ...configured?.headers, ...configured?.modelHeaders.get(model.id) });
    const apiKey = await this.#keys.resolve(provider);
    for (const [what, value] of [["key", apiKey], ...Object.entries(headers)]) {
      if (value !== undefined && !/^[\t\x20-\x7e\x80-\xff]*$/.test(value))
        throw unsendable(provider, what === "key" ? "API key" : `header "${what}"`);
    }
    if (apiKey === undefined && !this.#keys.isKeyless(provider, model.api)) throw this.#keys.missing(provider, this.#files.user);
    if (configured?.authHeader && apiKey !== undefined) {
      return { headers: { ...headers, authorization: `Bearer ${apiKey}` } };
    }
    return { apiKey, ...(Object.keys(headers).length > 0 && { headers }) };
  }

  async #headers(configured: Readonly<Record<string, string>>): Promise<Record<string, string>> {
    const headers: Record<string, string> = {};
    for (const [name, value] of Object.entries(configured)) headers[name] = await this.#values.resolve(value);
    return headers;
  }

  renew({ provider }: Model): Promise<boolean> {
    return this.#keys.renew(provider);
  }

  clamp(model: Model, level: ThinkingLevel): ThinkingLevel {
    return clampLevel(model, level);
  }

  async refresh(): Promise<void> {
    await this.#files.load();
    this.#all = undefined;
    this.#told.clear();
    this.#tellProblems();
    this.#discovered.clear();
    this.startDiscovery();
    await this.settled();
  }

  /** Called when models.yml changed: servers that were asked already are not asked again. */
  async reload(): Promise<void> {
    await this.#files.load();
    this.#all = undefined;
    this.#tellProblems();
    this.startDiscovery();
  }

  /** Resolves when no server is being asked. Never rejects. */
  settled(): Promise<void> {
    return this.#discovery ?? Promise.resolve();
  }

  tellUnspoken(): void {
    for (const { id, models } of this.#file().providers.values()) {
      const unspoken = models.find(({ api }) => this.#ctx.registry.get("provider", api) === undefined);
      if (unspoken === undefined) continue;
      const known = this.#ctx.registry.list("provider").map(({ definition }) => definition.name);
      this.#tell(
        `models.yml: providers.${id}: nothing speaks the api "${unspoken.api}" of ${fullName(unspoken)}; there are ${known.join(", ")}`,
      );
    }
  }

  get isDiscovering(): boolean {
    return this.#discovery !== undefined;
  }

  /** Asks servers for their models in the background. Failures are reported once and cost nothing else. */
  startDiscovery(): void {
    const waiting: Promise<void>[] = [];
    for (const source of this.#sources()) {
      const key = `${source.baseUrl}\0${source.api}`;
      if (this.#discovered.get(source.provider)?.source === key) continue;
      this.#discovered.set(source.provider, { source: key, models: [] });
      waiting.push(this.#discover(source, key));
    }
    if (waiting.length === 0) return;
    const running = Promise.all([this.#discovery, ...waiting]).then(() => {
      if (this.#discovery === running) this.#discovery = undefined;
    });
    this.#discovery = running;
  }

  async askAgain(provider?: string): Promise<void> {
    const waiting: Promise<void>[] = [];
    for (const source of this.#sources()) {
      const isMeant = provider === undefined ? this.#discovered.get(source.provider)?.failed : source.provider === provider;
      if (!isMeant) continue;
      const asking =
        this.#askingAgain.get(source.provider) ??
        this.#discover(source, `${source.baseUrl}\0${source.api}`).finally(() => this.#askingAgain.delete(source.provider));
      this.#askingAgain.set(source.provider, asking);
      waiting.push(asking);
    }
    await Promise.all(waiting);
  }

  async #discover(source: { provider: string; api: string; baseUrl: string }, key: string): Promise<void> {
    const configured = this.#file().providers.get(source.provider);
    try {
      const apiKey = await this.#keys.resolve(source.provider);
      const headers = await this.#headers(configured?.headers ?? {});
      const from = { ...source, apiKey, headers, compat: configured?.compat };
      const fetch = await this.#ctx.tryUse(Transport)?.fetch();
      const models = await discover(from, this.#ctx.setting(discoveryTimeoutMs), this.#ctx.scope.signal, fetch);
      this.#discovered.set(source.provider, { source: key, models });
      this.#all = undefined;
    } catch (error) {
      if (this.#ctx.scope.signal.aborted) return;
      const known = this.#discovered.get(source.provider);
      // What it listed before stays: a server that is being restarted has not lost its models.
      this.#discovered.set(source.provider, { source: key, models: known?.source === key ? known.models : [], failed: true });
      this.#tell(errorMessage(error));
    }
  }

  *#sources(): Generator<{ provider: string; api: string; baseUrl: string }> {
    const disabled = new Set(this.#ctx.setting(disabledProviders));
    const { providers } = this.#file();
    for (const id of new Set([...providers.keys(), ...Object.keys(knownProviders)])) {
      const configured = providers.get(id);
      const known = knownProviders[id];
      if (disabled.has(id) || !(configured?.discovery || known?.discovery)) continue;
      const api = configured?.api ?? known?.api;
      const baseUrl = configured?.baseUrl ?? known?.baseUrl;
      if (!api || !baseUrl || !(this.#keys.isKeyless(id, api) || this.#keys.has(id))) continue;
      yield { provider: id, api, baseUrl };
    }
  }

  #models(): { models: Model[]; byName: Map<string, Model> } {
    if (this.#all) return this.#all;
    const byName = new Map<string, Model>();
    const add = (model: Model) => byName.set(fullName(model), model);
    for (const model of catalogue) add({ ...model, baseUrl: this.#address(model.provider) ?? model.baseUrl });
    for (const { definition } of this.#ctx.registry.list("provider")) for (const model of definition.models ?? []) add(model);
    for (const { models } of this.#discovered.values()) for (const model of models) if (!byName.has(fullName(model))) add(model);
    for (const configured of this.#file().providers.values()) {
      for (const model of byName.values()) {
        if (model.provider === configured.id) add(changed(model, configured));
      }
      for (const model of configured.models) add(changed(model, configured));
    }
    this.#all = { models: [...byName.values()], byName };
    return this.#all;
  }

  /** The address that the environment names for a known service. */
  #address(provider: string): string | undefined {
    const name = knownProviders[provider]?.baseUrlName;
    return (name && this.#launch.env[name]) || undefined;
  }

  #file(): ModelsFile {
    return this.#files.merged(this.#ctx.tryUse(Trust)?.isTrusted(this.#launch.cwd, this.#files.project) ?? false);
  }

  #select(selector: string, provider: string | undefined): Selected | undefined {
    const found = select(selector, [this.available(), this.#models().models], provider);
    return found ?? this.#unlisted(selector, provider);
  }

  /** A model of a provider we can reach, by a name nobody listed: services get new ones faster than catalogues. */
  #unlisted(selector: string, provider: string | undefined): Selected | undefined {
    const slash = selector.indexOf("/");
    const owner = provider ?? (slash > 0 ? selector.slice(0, slash) : undefined);
    const name = selector.startsWith(`${owner}/`) ? selector.slice(slash + 1) : selector;
    const configured = owner === undefined ? undefined : this.#file().providers.get(owner);
    const known = owner === undefined ? undefined : knownProviders[owner];
    const api = configured?.api ?? known?.api;
    const baseUrl = configured?.baseUrl ?? (owner && this.#address(owner)) ?? known?.baseUrl;
    if (owner === undefined || !api || !baseUrl || name === "") return undefined;
    const colon = name.lastIndexOf(":");
    const level = colon > 0 ? parseLevel(name.slice(colon + 1)) : undefined;
    const id = level === undefined ? name : name.slice(0, colon);
    const over = configured?.overrides[id];
    const model = complete({ id, provider: owner, api, baseUrl, compat: configured?.compat, over });
    return level === undefined ? { model } : { model, thinkingLevel: level };
  }

  #chosen(): Selected | undefined {
    const { model, provider } = this.#launch.options;
    if (model !== undefined) {
      const selected = this.#select(model, provider);
      if (selected) return selected;
      this.#tell(`Model not found: ${provider ? `${provider}/` : ""}${model}. See get_available_models, or add it to models.yml`);
      return undefined;
    }
    const available = this.available().filter((candidate) => candidate.provider !== "offline" || provider === "offline");
    if (provider !== undefined) {
      const first =
        available.find((candidate) => candidate.provider === provider) ??
        this.#models().models.find((m) => m.provider === provider);
      if (first) return { model: first };
      this.#tell(`No models of the provider "${provider}" are known`);
      return undefined;
    }
    const scope = this.#scope();
    const scoped = scope && selectAll(scope, available)[0];
    if (scoped) return scoped;
    const saved = this.#ctx.setting(defaultModel);
    const savedModel = saved === "" ? undefined : this.#select(saved, this.#ctx.setting(defaultProvider) || undefined);
    if (savedModel) return savedModel;
    const first = available[0];
    return first && { model: first };
  }

  #scope(): readonly string[] | undefined {
    const asked = this.#launch.options.models
      ?.split(",")
      .map((entry) => entry.trim())
      .filter((entry) => entry !== "");
    const entries = asked && asked.length > 0 ? asked : this.#ctx.setting(enabledModels);
    return entries.length > 0 ? entries : undefined;
  }

  #tellProblems(): void {
    for (const problem of this.#file().problems) this.#tell(problem);
  }

  #tell(message: string): void {
    if (this.#told.has(message)) return;
    this.#told.add(message);
    this.#ctx.send(notice, { level: "warning", message, source: "models" });
  }
}

function unsendable(provider: string, what: string): ProviderError {
  return new ProviderError(`The ${what} of ${provider} holds a character that no request can carry: copy it again`, "auth");
}

function changed(model: Model, configured: ConfiguredProvider): Model {
  const own = configured.models.some((candidate) => candidate.id === model.id);
  const moved = configured.baseUrl !== undefined && !own ? { ...model, baseUrl: configured.baseUrl } : model;
  return override(moved, configured.overrides[model.id] ?? {}, own ? undefined : configured.compat);
}
