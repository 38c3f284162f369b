// Which tools a conversation offers: the registry's, minus what is not available here, hidden or switched off. Computed once
// per registry version, so that reading the state costs nothing.
import type { Context } from "../kernel/context.ts";
import type { Entry } from "../kernel/registry.ts";
import { Settings } from "../services/settings.ts";
import type { ToolSchema } from "./provider.ts";
import { toolSchemaOf } from "./tool-schema.ts";

export class ToolSet {
  readonly #ctx: () => Context;
  readonly #isSubagent: boolean;
  #active: readonly string[] | undefined;
  #version = -1;
  #offered: ReadonlyMap<string, Entry<"tool">> = new Map();
  #schemas: readonly ToolSchema[] = [];
  #converted = new Map<string, { entry: Entry<"tool">; schema: ToolSchema }>();

  constructor(options: { ctx: () => Context; isSubagent: boolean; active?: readonly string[] | undefined }) {
    this.#ctx = options.ctx;
    this.#isSubagent = options.isSubagent;
    this.#active = options.active;
  }

  get active(): string[] | undefined {
    return this.#active === undefined ? undefined : [...this.#active];
  }
  setActive(names: readonly string[] | undefined): void {
    this.#active = names === undefined ? undefined : [...new Set(names)];
    this.invalidate();
  }
  /** Something `available` reads has changed: settings, the host's abilities. */
  invalidate(): void {
    this.#version = -1;
  }

  /** The offered tool of that name, whichever unit answers it now. */
  get(name: string): Entry<"tool"> | undefined {
    return this.#fresh().get(name);
  }
  offered(): readonly Entry<"tool">[] {
    return [...this.#fresh().values()];
  }
  schemas(): readonly ToolSchema[] {
    this.#fresh();
    return this.#schemas;
  }

  #fresh(): ReadonlyMap<string, Entry<"tool">> {
    const ctx = this.#ctx();
    if (this.#version === ctx.registry.version) return this.#offered;
    this.#version = ctx.registry.version;
    const before = this.#schemas;
    this.#offered = new Map(
      ctx.registry
        .list("tool")
        .filter((entry) => this.#isOffered(entry, ctx))
        .map((entry) => [entry.name, entry]),
    );
    const schemas = [...this.#offered.values()]
      .map((entry) => this.#schemaOf(entry, ctx))
      .filter((schema) => schema !== undefined);
    const same = schemas.length === before.length && schemas.every((schema, index) => schema === before[index]);
    if (!same) this.#schemas = schemas;
    return this.#offered;
  }

  #isOffered(entry: Entry<"tool">, ctx: Context): boolean {
    const { definition } = entry;
    if (this.#active !== undefined) {
      if (!this.#active.includes(entry.name)) return false;
    } else if (definition.hidden === true) {
      return false;
    }
    if (definition.available === undefined) return true;
    try {
      return definition.available({
        mode: ctx.mode,
        hasUI: ctx.hasUI,
        isSubagent: this.#isSubagent,
        context: ctx,
        // The caller names the type it declared the setting with; the settings service has validated the value.
        setting: <T>(path: string) => ctx.tryUse(Settings)?.getPath(path) as T,
      });
    } catch (error) {
      ctx.reportError(entry.scope.owner.id, `tool ${entry.name}`, error);
      return false;
    }
  }

  /** A tool whose schema cannot be shown to a model is reported and left out, the others stay. */
  #schemaOf(entry: Entry<"tool">, ctx: Context): ToolSchema | undefined {
    const known = this.#converted.get(entry.name);
    if (known?.entry === entry) return known.schema;
    try {
      const schema = toolSchemaOf(entry.definition);
      this.#converted.set(entry.name, { entry, schema });
      return schema;
    } catch (error) {
      ctx.reportError(entry.scope.owner.id, `tool ${entry.name}`, error);
      return undefined;
    }
  }
}
