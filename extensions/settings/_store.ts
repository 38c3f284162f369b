// The settings service: layers of data, lowest first, and the definitions that give them meaning.
// Invariants: `get` never throws and never gives a value its definition does not accept; a layer that is broken answers with
// its last good content; nothing but `write` touches a file.
import {
  CommandError,
  type Context,
  errorMessage,
  notice,
  type SettingDefinition,
  type SettingLayer,
  type Settings,
  type SettingsFileError,
  Trust,
} from "mortise/extension";
import { blocked, type Data, expand, freeze, isMapping, isPath, merge, readPath, without } from "./_data.ts";
import { writePath } from "./_file.ts";
import { legacyValues } from "./_legacy.ts";
import { SENSITIVE_PATHS } from "./_sensitive.ts";
import type { Sources } from "./_sources.ts";

interface Layer {
  readonly layer: SettingLayer;
  readonly file?: string | undefined;
  readonly data: Data;
  readonly legacy: Data;
}

interface Effective {
  readonly value: unknown;
  readonly layer: SettingLayer;
  readonly file?: string | undefined;
}

export class SettingsStore implements Settings {
  readonly fatal: SettingsFileError | undefined;
  readonly #ctx: Context;
  readonly #cwd: string;
  readonly #sources: Sources;
  readonly #listeners = new Set<(paths: readonly string[]) => void>();
  /** What was told about, by what it is about; a cure forgets it, so that a relapse is told again. */
  readonly #told = new Map<string, string>();
  #withheld: readonly string[] = [];
  #runtime: Data = {};
  #cache = new Map<string, Effective & { definition: SettingDefinition | undefined }>();
  #layers: readonly Layer[] | undefined;
  #known: ReadonlyMap<string, SettingDefinition> | undefined;
  #unsubscribeTrust: (() => void) | undefined;

  constructor(ctx: Context, cwd: string, sources: Sources) {
    this.#ctx = ctx;
    this.#cwd = cwd;
    this.#sources = sources;
    this.fatal = sources.list.find((source) => source.layer === "overlay" && source.error !== undefined)?.error;
    this.#tellAboutFiles();
    this.#subscribeToTrust();
    const unsubscribe = ctx.registry.onChange((diff) => {
      if (!diff.touches("setting") && !diff.touches("service", Trust.name)) return;
      this.#change(() => {
        this.#known = undefined;
        this.#subscribeToTrust();
      });
    });
    ctx.scope.own(() => {
      unsubscribe();
      this.#unsubscribeTrust?.();
    }, "settings");
    sources.watch((apply) => this.#change(apply));
    ctx.scope.own(() => sources.close(), "settings files");
    this.#projectLayer();
  }

  get<T>(setting: SettingDefinition<T>): T {
    // The cached value went through this definition's schema.
    return this.#effective(setting.name, setting).value as T;
  }

  getPath(path: string): unknown {
    const definition = this.#definition(path);
    if (definition !== undefined) return this.#effective(definition.name, definition).value;
    let value = this.#effective(path, undefined).value;
    for (const known of this.#definitions().values()) {
      if (!known.name.startsWith(`${path}.`)) continue;
      const inner = expand({ [known.name.slice(path.length + 1)]: this.#effective(known.name, known).value });
      value = isMapping(value) ? merge(value, inner) : (value ?? inner);
    }
    return value;
  }

  origin(path: string): { layer: SettingLayer; file?: string | undefined } {
    const definition = this.#definition(path);
    const { layer, file } = this.#effective(definition?.name ?? path, definition);
    return { layer, file };
  }

  setRuntime(path: string, value: unknown): void {
    const name = this.#check(path, value);
    this.#change(() => {
      const { [name]: _before, ...rest } = this.#runtime;
      this.#runtime = value === undefined ? rest : { ...rest, [name]: structuredClone(value) };
    });
  }

  async write(layer: "user" | "project", path: string, value: unknown): Promise<void> {
    const name = this.#check(path, value);
    const source = this.#sources.list.find((candidate) => candidate.layer === layer);
    if (source === undefined) throw new CommandError(`Cannot set "${path}": there is no ${layer} settings file`);
    await writePath(source.file, name, value, layer === "user" ? 0o600 : undefined);
    await this.#sources.reload();
  }

  onChange(listener: (paths: readonly string[]) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  all(): Record<string, unknown> {
    let all: Record<string, unknown> = {};
    for (const { data } of this.#currentLayers()) {
      const merged = merge(all, expand(data));
      if (isMapping(merged)) all = merged;
    }
    return all;
  }

  /** Paths that are defined, in order of their names. */
  paths(): string[] {
    return [...this.#definitions().keys()].sort();
  }

  #definitions(): ReadonlyMap<string, SettingDefinition> {
    this.#known ??= new Map(this.#ctx.registry.list("setting").map((entry) => [entry.name, entry.definition]));
    return this.#known;
  }

  /** All names, older ones included. */
  #names(): ReadonlySet<string> {
    return new Set([...this.#definitions().values()].flatMap(({ name, aliases = [] }) => [name, ...aliases]));
  }

  #definition(path: string): SettingDefinition | undefined {
    const direct = this.#definitions().get(path);
    if (direct !== undefined) return direct;
    for (const definition of this.#definitions().values()) if (definition.aliases?.includes(path)) return definition;
    return undefined;
  }

  /** The name to store a value under. @throws {CommandError} invalid_params when path or value do not fit. */
  #check(path: string, value: unknown): string {
    if (!isPath(path)) {
      throw new CommandError(`Cannot set "${path}": expected a dotted name such as todo.reminders`, "invalid_params");
    }
    const definition = this.#definition(path);
    if (definition === undefined) return path;
    const issue = value === undefined ? undefined : misfit(definition, value);
    if (issue !== undefined) throw new CommandError(`Cannot set "${path}": ${issue}`, "invalid_params");
    return definition.name;
  }

  #effective(path: string, definition: SettingDefinition | undefined): Effective {
    const cached = this.#cache.get(path);
    if (cached !== undefined && cached.definition === definition) return cached;
    const computed = definition === undefined ? this.#unchecked(path) : this.#checked(definition);
    this.#cache.set(path, { ...computed, definition });
    return computed;
  }

  #unchecked(path: string): Effective {
    let effective: Effective = { value: undefined, layer: "default" };
    for (const { layer, file, data } of this.#currentLayers()) {
      const value = readPath(data, path);
      if (value !== undefined) effective = { value: merge(effective.value, value), layer, file };
    }
    return { ...effective, value: freeze(structuredClone(effective.value)) };
  }

  #checked(definition: SettingDefinition): Effective {
    let raw: unknown = definition.default;
    let effective: Effective | undefined;
    for (const { layer, file, data, legacy } of this.#currentLayers()) {
      const own = this.#ownValue(definition, data, legacy);
      if (own === undefined) continue;
      const candidate = merge(raw, own);
      const parsed = definition.schema.safeParse(structuredClone(candidate));
      const topic = `${file ?? layer} ${definition.name}`;
      if (parsed.success) {
        raw = candidate;
        effective = { value: freeze(parsed.data), layer, file };
        this.#told.delete(topic);
      } else
        this.#tell(topic, "warning", `Setting "${definition.name}" in ${file ?? layer} is ignored: ${firstIssue(parsed.error)}`);
    }
    if (effective !== undefined) return effective;
    // 000_…: host defaults apply only when the path is unset.
    const host = definition.hostDefault;
    return host === undefined
      ? { value: freeze(structuredClone(definition.default)), layer: "default" }
      : { value: freeze(structuredClone(host)), layer: "host" };
  }

  /** What one layer says, by name, then by older names. Keys that belong to settings below this one are not part of it. */
  #ownValue(definition: SettingDefinition, data: Data, legacy: Data): unknown {
    for (const name of [definition.name, ...(definition.aliases ?? [])]) {
      const value = this.#withoutInner(name, readPath(data, name));
      if (value !== undefined) return value;
    }
    return legacy[definition.name];
  }

  #withoutInner(name: string, value: unknown): unknown {
    if (!isMapping(value)) return value;
    const inner = new Set<string>();
    for (const known of this.#definitions().values()) {
      for (const path of [known.name, ...(known.aliases ?? [])]) {
        if (path.startsWith(`${name}.`)) inner.add(path.slice(name.length + 1));
      }
    }
    if (inner.size === 0) return value;
    const kept = without(value, inner, []);
    return Object.keys(kept).length === 0 && Object.keys(value).length > 0 ? undefined : kept;
  }

  #currentLayers(): readonly Layer[] {
    this.#layers ??= [
      ...this.#sources.list.map((source) => {
        const data = source.layer === "project" ? this.#projectLayer() : source.data;
        return { layer: source.layer, file: source.file, data, legacy: legacyValues(data) };
      }),
      { layer: "runtime" as const, data: this.#runtime, legacy: {} },
    ];
    return this.#layers;
  }

  withheld(): readonly string[] {
    this.#currentLayers();
    return this.#withheld;
  }

  /** The project's file, without what needs trust while there is none. */
  #projectLayer(): Data {
    const source = this.#sources.list.find((candidate) => candidate.layer === "project");
    this.#withheld = [];
    if (source === undefined) return {};
    if (this.#ctx.tryUse(Trust)?.isTrusted(this.#cwd, source.file) === true) {
      this.#told.delete(`${source.file} trust`);
      return source.data;
    }
    const paths = new Set(SENSITIVE_PATHS);
    for (const definition of this.#definitions().values()) {
      if (definition.trustedOnly) for (const path of [definition.name, ...(definition.aliases ?? [])]) paths.add(path);
    }
    const removed: string[] = [];
    const kept = without(source.data, paths, removed);
    this.#withheld = removed.sort();
    if (removed.length > 0) {
      const names = removed.join(", ");
      this.#tell(`${source.file} trust`, "warning", `Ignored in ${source.file} until the project is trusted: ${names}`);
    }
    return kept;
  }

  #subscribeToTrust(): void {
    this.#unsubscribeTrust?.();
    this.#unsubscribeTrust = this.#ctx.tryUse(Trust)?.onChange(() => this.#change(() => {}));
  }

  /** Applies a change and tells the listeners which values became others. */
  #change(apply: () => void): void {
    const before = this.#listeners.size > 0 ? this.#snapshot() : undefined;
    apply();
    this.#cache = new Map();
    this.#layers = undefined;
    this.#tellAboutFiles();
    if (before === undefined) return;
    const after = this.#snapshot();
    const changed = [...new Set([...before.keys(), ...after.keys()])].filter((path) => before.get(path) !== after.get(path));
    if (changed.length === 0) return;
    for (const listener of [...this.#listeners]) {
      try {
        listener(changed);
      } catch (error) {
        this.#ctx.reportError(this.#ctx.owner, "settings change", error);
      }
    }
  }

  /** Every effective value by path: the defined ones, and what is configured beside them. */
  #snapshot(): Map<string, string> {
    const values = new Map<string, string>();
    for (const [path, value] of leaves(this.all())) values.set(path, JSON.stringify(value) ?? "");
    for (const definition of this.#definitions().values()) {
      values.set(definition.name, JSON.stringify(this.#effective(definition.name, definition).value) ?? "");
    }
    return values;
  }

  #tellAboutFiles(): void {
    const names = this.#names();
    for (const { file, data, error } of this.#sources.list) {
      const now = new Set(blocked(data, names).map((path) => `${file} below ${path}`));
      for (const topic of this.#told.keys()) if (topic.startsWith(`${file} below `) && !now.has(topic)) this.#told.delete(topic);
      for (const topic of now) {
        const path = topic.slice(`${file} below `.length);
        const example = [...names].find((name) => name.startsWith(`${path}.`));
        this.#tell(topic, "warning", `"${path}" in ${file} is ignored: expected settings below it, such as ${example}`);
      }
      if (error === undefined) this.#told.delete(file);
      // A `--config` file that is broken at start is told by whoever ends the daemon over it.
      else if (error !== this.fatal) this.#tell(file, "error", error.message);
    }
  }

  #tell(topic: string, level: "warning" | "error", message: string): void {
    if (this.#told.get(topic) === message) return;
    this.#told.set(topic, message);
    this.#ctx.log[level === "error" ? "error" : "warn"](message);
    this.#ctx.send(notice, { level, message, source: "settings" });
  }
}

function* leaves(data: Data, prefix = ""): Iterable<[string, unknown]> {
  for (const [key, value] of Object.entries(data)) {
    const path = prefix === "" ? key : `${prefix}.${key}`;
    if (isMapping(value)) yield* leaves(value, path);
    else yield [path, value];
  }
}

function misfit(definition: SettingDefinition, value: unknown): string | undefined {
  try {
    const parsed = definition.schema.safeParse(structuredClone(value));
    return parsed.success ? undefined : firstIssue(parsed.error);
  } catch (error) {
    return errorMessage(error);
  }
}

/** One line, without the value: it may be a secret. */
function firstIssue(error: { issues: readonly { path: readonly PropertyKey[]; message: string }[] }): string {
  const [issue] = error.issues;
  if (issue === undefined) return "the value does not fit";
  const at = issue.path.length > 0 ? `${issue.path.map(String).join(".")}: ` : "";
  return `${at}${issue.message}`;
}
