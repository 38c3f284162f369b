// models.yml: other addresses, other models, other keys. One provider's mistake costs that provider only, one model's that model.
//
//   providers:
//     local:
//       baseUrl: http://127.0.0.1:11434/v1
//       auth: none
//       discovery: true
//     work:
//       baseUrl: https://llm.example.com
//       api: anthropic-messages
//       apiKey: "!pass show llm"
//       models: [{ id: house-1, reasoning: true, contextWindow: 200000 }]
import { type Model, THINKING_EFFORTS, z } from "mortise/extension";
import { catalogue, knownProviders } from "./_catalogue.ts";

/** What may stand in a request. Commands and variables are looked at when they have given their value. */
const Headers = z.record(
  z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, "no name of a header"),
  z.string().regex(/^(?:!|[\t\x20-\x7e\x80-\xff]*$)/, "holds what no header can: a line break or a letter beyond Latin-1"),
);
const Compat = z.record(z.string(), z.unknown());
const Cost = z
  .object({ input: z.number().min(0), output: z.number().min(0), cacheRead: z.number().min(0), cacheWrite: z.number().min(0) })
  .partial();
const Thinking = z.object({
  mode: z.enum(["budget", "effort", "adaptive"]).optional(),
  efforts: z.array(z.enum(THINKING_EFFORTS)).min(1).optional(),
  defaultLevel: z.enum(["off", ...THINKING_EFFORTS]).optional(),
  off: z.enum(["omit", "disabled", "between_tools", "never"]).optional(),
});
const HttpUrl = z.url({ protocol: /^https?$/, error: "expected an http or https URL" });

const Override = z.object({
  name: z.string().min(1).optional(),
  reasoning: z.boolean().optional(),
  input: z
    .array(z.enum(["text", "image"]))
    .min(1)
    .optional(),
  contextWindow: z.number().int().positive().optional(),
  maxTokens: z.number().int().positive().optional(),
  cost: Cost.optional(),
  headers: Headers.optional(),
  compat: Compat.optional(),
  thinking: Thinking.optional(),
  supportsTools: z.boolean().optional(),
  requestModelId: z.string().min(1).optional(),
});
type Override = z.infer<typeof Override>;

const ModelEntry = Override.extend({ id: z.string().min(1), api: z.string().min(1).optional(), baseUrl: HttpUrl.optional() });

const ProviderEntry = z.object({
  baseUrl: HttpUrl.optional(),
  apiKey: z.string().min(1).optional(),
  api: z.string().min(1).optional(),
  headers: Headers.optional(),
  authHeader: z.boolean().optional(),
  auth: z.enum(["apiKey", "none", "oauth"]).optional(),
  compat: Compat.optional(),
  discovery: z.union([z.boolean(), z.object({ type: z.string().optional() })]).optional(),
  modelOverrides: z.record(z.string(), z.unknown()).optional(),
  models: z.array(z.unknown()).optional(),
});

const Parts = z.object({
  models: z.array(z.unknown()).optional().catch(undefined),
  modelOverrides: z.record(z.string(), z.unknown()).optional().catch(undefined),
});

const File = z.object({ providers: z.record(z.string().min(1), z.unknown()).nullish() });

/** A provider of the file with what is right in it. */
type ProviderEntry = Omit<z.infer<typeof ProviderEntry>, "modelOverrides" | "models"> & {
  modelOverrides: Record<string, Override>;
  models: z.infer<typeof ModelEntry>[];
};

/** What a file says about one provider, checked. Values are unresolved. */
export interface ConfiguredProvider {
  readonly id: string;
  readonly api: string | undefined;
  readonly baseUrl: string | undefined;
  readonly apiKey: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly authHeader: boolean;
  readonly auth: "apiKey" | "none" | "oauth" | undefined;
  readonly compat: Readonly<Record<string, unknown>> | undefined;
  readonly discovery: boolean;
  readonly overrides: Readonly<Record<string, Override>>;
  /** Complete models, in file order. */
  readonly models: readonly Model[];
  readonly modelHeaders: ReadonlyMap<string, Readonly<Record<string, string>>>;
}

export interface ModelsFile {
  readonly providers: ReadonlyMap<string, ConfiguredProvider>;
  /** One line each, with the path of the value. */
  readonly problems: readonly string[];
}

export const emptyModelsFile: ModelsFile = { providers: new Map(), problems: [] };

/** Reads the parsed YAML of one file. Never throws. */
export function readModelsFile(value: unknown): ModelsFile {
  const file = File.safeParse(value ?? {});
  if (!file.success) return { providers: new Map(), problems: lines(file.error, []) };
  const providers = new Map<string, ConfiguredProvider>();
  const problems = unknownKeys(value, File, []);
  for (const [id, raw] of Object.entries(file.data.providers ?? {})) {
    const entry = readProvider(id, raw, problems);
    const found = entry === undefined ? [] : missing(id, entry);
    if (entry !== undefined && found.length === 0) providers.set(id, configured(id, entry));
    problems.push(...found);
  }
  return { providers, problems };
}

function readProvider(id: string, raw: unknown, problems: string[]): ProviderEntry | undefined {
  const at = ["providers", id];
  const read = <T extends z.ZodObject>(schema: T, part: unknown, path: readonly string[]): z.infer<T> | undefined => {
    problems.push(...unknownKeys(part, schema, path));
    const parsed = schema.safeParse(part);
    if (parsed.success) return parsed.data;
    problems.push(...lines(parsed.error, path));
    return undefined;
  };
  const entry = read(ProviderEntry, raw, at);
  // All mistakes are told at once, those in the models of a provider that cannot be used as well.
  const parts = Parts.safeParse(raw).data;
  const models = new Map<string, z.infer<typeof ModelEntry>>();
  for (const [place, part] of (parts?.models ?? []).entries()) {
    const path = [...at, "models", String(place)];
    const model = read(ModelEntry, part, path);
    if (model === undefined) continue;
    if (models.has(model.id)) problems.push(`${path.join(".")}.id: "${model.id}" stands there twice; the last one counts`);
    models.set(model.id, model);
  }
  const modelOverrides: Record<string, Override> = {};
  for (const [model, part] of Object.entries(parts?.modelOverrides ?? {})) {
    const over = read(Override, part, [...at, "modelOverrides", model]);
    if (over !== undefined) modelOverrides[model] = over;
  }
  return entry && { ...entry, models: [...models.values()], modelOverrides };
}

/** Keys that mean nothing here are nearly always misspelt ones. */
function unknownKeys(value: unknown, schema: z.ZodObject, path: readonly string[]): string[] {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return [];
  const names = Object.keys(schema.shape);
  return Object.keys(value).flatMap((key) => {
    // Parts that are used elsewhere by an anchor are kept under such names.
    if (names.includes(key) || /^(?:x-|[._])/.test(key)) return [];
    const letters = lettersOf(key);
    const meant = letters && names.find((name) => lettersOf(name).startsWith(letters) || letters.startsWith(lettersOf(name)));
    return [`${[...path, key].join(".")}: unknown key, which is left out${meant ? `; did you mean ${meant}?` : ""}`];
  });
}

function lettersOf(key: string): string {
  return key.toLowerCase().replace(/[^a-z]/g, "");
}

function lines(error: z.ZodError, prefix: readonly string[]): string[] {
  return error.issues.map((issue) => {
    // Of a record's key the message stands one level further down.
    const inner = issue.code === "invalid_key" ? issue.issues[0]?.message : undefined;
    return `${[...prefix, ...issue.path.map(String)].join(".") || "the file"}: ${inner ?? issue.message}`;
  });
}

/** What the shape alone cannot say. */
function missing(id: string, entry: ProviderEntry): string[] {
  const at = `providers.${id}`;
  const known = knownProviders[id];
  const problems: string[] = [];
  const hasNewModels = entry.models.length > 0;
  const needsAddress = hasNewModels || Boolean(entry.discovery);
  if (needsAddress && !entry.baseUrl && !known && !(hasNewModels && entry.models.every((model) => model.baseUrl))) {
    problems.push(`${at}.baseUrl: missing; a provider with its own models needs an address`);
  }
  if (hasNewModels && !entry.api && !known && !entry.models.every((model) => model.api)) {
    problems.push(`${at}.api: missing; name how the server is spoken to, e.g. openai-completions or anthropic-messages`);
  }
  return problems;
}

function configured(id: string, entry: ProviderEntry): ConfiguredProvider {
  const known = knownProviders[id];
  const api = entry.api ?? known?.api ?? (entry.discovery ? "openai-completions" : undefined);
  const baseUrl = entry.baseUrl ?? known?.baseUrl;
  const models = entry.models.map((model) =>
    complete({
      id: model.id,
      provider: id,
      api: model.api ?? api ?? "",
      baseUrl: model.baseUrl ?? baseUrl ?? "",
      compat: entry.compat,
      over: model,
    }),
  );
  return {
    id,
    api,
    baseUrl: entry.baseUrl,
    apiKey: entry.apiKey,
    headers: entry.headers ?? {},
    authHeader: entry.authHeader ?? false,
    auth: entry.auth,
    compat: entry.compat,
    discovery: entry.discovery !== undefined && entry.discovery !== false,
    overrides: entry.modelOverrides,
    models,
    modelHeaders: new Map(entry.models.flatMap((model) => (model.headers ? [[model.id, model.headers] as const] : []))),
  };
}

/** A model with everything filled in; the defaults are those of the file's family (agent-semantics §2.8). */
export function complete(from: {
  id: string;
  provider: string;
  api: string;
  baseUrl: string;
  compat?: Readonly<Record<string, unknown>> | undefined;
  over?: Override | undefined;
}): Model {
  const known = catalogue.find((model) => model.provider === from.provider && model.id === from.id);
  const plain: Model = known ?? {
    id: from.id,
    name: from.id,
    api: from.api,
    provider: from.provider,
    baseUrl: from.baseUrl,
    reasoning: false,
    input: ["text"],
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
    contextWindow: 128_000,
    maxTokens: 16_384,
  };
  return override({ ...plain, api: from.api || plain.api, baseUrl: from.baseUrl || plain.baseUrl }, from.over ?? {}, from.compat);
}

/** The model with some of its values changed. */
export function override(model: Model, over: Override, compat?: Readonly<Record<string, unknown>>): Model {
  const { cost, headers: _headers, compat: ownCompat, thinking, ...plain } = over;
  const changed: Model = { ...model, ...defined(plain) };
  if (cost) changed.cost = { ...model.cost, ...defined(cost) };
  if (compat || ownCompat) changed.compat = { ...model.compat, ...compat, ...ownCompat };
  if (!changed.reasoning) delete changed.thinking;
  else if (thinking || !changed.thinking) {
    const base = changed.thinking ?? {
      mode: changed.api === "anthropic-messages" ? ("budget" as const) : ("effort" as const),
      efforts: ["low" as const, "medium" as const, "high" as const],
    };
    changed.thinking = { ...base, ...defined(thinking ?? {}) };
  }
  return changed;
}

/** Without the keys that are undefined: they would cover what is there. */
function defined<T extends object>(value: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(value).filter(([, inner]) => inner !== undefined)) as {
    [K in keyof T]: Exclude<T[K], undefined>;
  };
}
