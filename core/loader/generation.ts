// One version of one unit: evaluated, set up and checked, not yet live. Nothing here touches the registry; a failure leaves no
// trace but its error.
import type { AnyDefinition, ExtensionDefinition } from "../kernel/definition.ts";
import { define } from "../kernel/definition.ts";
import { ExtensionError, errorMessage } from "../kernel/errors.ts";
import { type Owner, Scope } from "../kernel/scope.ts";
import type { UnitSource } from "./discover.ts";
import { Evaluation } from "./evaluate.ts";
import { HeldFileError, isFile } from "./files.ts";
import { createOwnedGlobals } from "./globals.ts";
import type { AdaptFactory, LoaderHost, LoadTimings } from "./host.ts";
import { ownFiles } from "./isolate/own-files.ts";
import { type HotState, type RetireReason, StagedSetup } from "./setup-scope.ts";
import type { Transformer } from "./transform.ts";
import { readDefault, type UnitContents, validate } from "./validate.ts";
import type { VirtualModules } from "./virtual-modules.ts";

export const LOAD_LIMIT_MS = 10_000;
export const SETUP_LIMIT_MS = 10_000;

const ENDINGS: Readonly<Record<RetireReason, string>> = {
  reload: "a newer version took its place",
  unload: "it was taken out",
  shutdown: "the daemon ends",
};

export interface GenerationParts {
  host: LoaderHost;
  transformer: Transformer;
  virtualModules: VirtualModules;
  adaptFactory?: AdaptFactory | undefined;
  /** Decides whether a unit runs in a process of its own. */
  isolate?: Isolate | undefined;
  loadLimitMs: number;
  setupLimitMs: number;
  mayRead?: ((realPath: string) => boolean) | undefined;
}

/** What is known of the files behind a generation. */
export type EvaluatedFiles = Pick<Evaluation, "files" | "missing" | "links" | "specifiers" | "timings" | "idleMs"> &
  Partial<Pick<Evaluation, "onFile">>;

/** A unit whose code runs in a process of its own, and what stands for it here. */
export interface IsolatedUnit {
  readonly extension: ExtensionDefinition;
  /** Filled by the extension's set-up. */
  readonly evaluation: EvaluatedFiles;
}

/** Puts a unit into a process of its own when that is wanted. */
export type Isolate = (source: UnitSource, owner: Owner) => Promise<IsolatedUnit | undefined>;

/** How a unit receives the state of the generation before (`export const hot`). */
interface HotExport {
  version?: string | number | undefined;
  migrate?: ((data: unknown, from: string | number | undefined) => unknown) | undefined;
}

/** What a generation left for the one after it. */
export interface Inheritance {
  data: unknown;
  version: string | number | undefined;
}

export class Generation {
  readonly scope: Scope;
  readonly timings: LoadTimings = { resolve: 0, transpile: 0, evaluate: 0, setup: 0, swap: 0 };
  readonly #parts: GenerationParts;
  readonly #contents: UnitContents = { contributes: [], setups: [] };
  readonly #hot: HotState = { data: undefined, version: undefined };
  readonly #setup: StagedSetup;
  #evaluation: EvaluatedFiles | undefined;
  #hotExport: HotExport = {};
  /** Schemas of built-ins are checked by their tests, not at every start. */
  #checkSchemas = true;

  constructor(parts: GenerationParts, owner: Owner, number: number) {
    this.#parts = parts;
    this.scope = new Scope({
      owner,
      generation: number,
      onUndoError: (error, label) =>
        parts.host.reportError({ owner: owner.id, event: `dispose ${label}`, error, phase: "dispose", generation: number }),
    });
    this.#setup = new StagedSetup(parts.host, this.scope, this.#hot);
  }

  get number(): number {
    return this.scope.generation;
  }

  /** Files, missing candidates and links, for watching; undefined for a compiled built-in. */
  get evaluation(): EvaluatedFiles | undefined {
    return this.#evaluation;
  }

  get inheritance(): Inheritance {
    return { data: this.#hot.data, version: this.#hot.version };
  }

  /** Everything the unit brings, contributions first. */
  get definitions(): AnyDefinition[] {
    return [...this.#contents.contributes, ...this.#setup.staged()];
  }

  /** Names of services of others without which this unit is not live, and whose change of owner re-activates it. */
  get requires(): string[] {
    const services = this.definitions.filter((definition) => definition.kind === "service");
    const own = new Set(services.map(({ name }) => name));
    return services.flatMap(({ requires = [] }) => requires.map(({ name }) => name)).filter((name) => !own.has(name));
  }

  /** Takes the default exports of an already imported built-in. @throws {ExtensionError} */
  adopt(exports: readonly unknown[]): void {
    this.#checkSchemas = false;
    const unitId = this.scope.owner.id;
    for (const value of exports) readDefault(value, { unitId, path: unitId, specifiers: [] }, this.#contents);
    // A service instance lives as long as its definition, so a later generation of the same modules needs its own.
    if (this.number > 1)
      this.#contents.contributes.splice(0, Number.POSITIVE_INFINITY, ...this.#contents.contributes.map(renewed));
  }

  /** Evaluates the unit's modules. @throws {ExtensionError} with phase `load`, whose cause is what the module threw. */
  async evaluate(source: UnitSource): Promise<void> {
    const { host, transformer, virtualModules, loadLimitMs } = this.#parts;
    const started = performance.now();
    const evaluation = new Evaluation({
      root: source.folder,
      transformer,
      virtualModules,
      globals: createOwnedGlobals(this.scope, host),
      assertLive: (action) => this.scope.assertLive(action),
      mayRead: this.#parts.mayRead,
    });
    this.#evaluation = evaluation;
    try {
      this.#permit(source.permissions);
      if (source.problem !== undefined) throw new Error(source.problem);
      if (source.entries.length === 0) throw new Error(`${source.path} names no modules; add one or correct package.json`);
      const absent = source.manifestKey && source.entries.find((path) => !isFile(path));
      if (absent) throw new Error(`${source.id}/package.json names ${absent}, where there is no module`);
      if (await this.#isolate(source)) return;
      const run = host.runAs(this.scope, () => this.#runEntries(source, evaluation));
      // Waiting for the worker, which units share, is not the unit's fault.
      const spent = () => evaluation.idleMs;
      await within(
        run,
        loadLimitMs,
        `Loading took longer than ${loadLimitMs} ms; look for an await at the top of a module`,
        spent,
      );
    } catch (error) {
      throw this.#failed("load", error);
    } finally {
      this.timings.evaluate = performance.now() - started;
      this.timings.resolve = evaluation.timings.resolve;
      this.timings.transpile = evaluation.timings.transpile;
    }
  }

  /** True when the unit runs in a process of its own: its set-up starts that. */
  async #isolate(source: UnitSource): Promise<boolean> {
    const { isolate, mayRead } = this.#parts;
    const isolated = await isolate?.(source, this.scope.owner);
    if (isolated === undefined) return false;
    const held = mayRead && ownFiles(source).find((path) => !mayRead(path));
    if (held !== undefined) throw new HeldFileError(held);
    this.#evaluation = isolated.evaluation;
    this.#contents.setups.push(isolated.extension);
    return true;
  }

  async #runEntries(source: UnitSource, evaluation: Evaluation): Promise<void> {
    const unitId = this.scope.owner.id;
    const { adaptFactory } = this.#parts;
    for (const path of source.entries) {
      const exports = await evaluation.run(path);
      const specifiers = [...evaluation.specifiers];
      const info = { unitId, path, specifiers, manifestKey: source.manifestKey, adaptFactory };
      readDefault(exports["default"], info, this.#contents);
      if (isHotExport(exports["hot"])) this.#hotExport = exports["hot"];
    }
  }

  /**
   * Runs the set-ups and checks the result. Returns a promise only when a set-up does, so that built-ins can start synchronously.
   *
   * @throws {ExtensionError} with phase `setup` or `validate`.
   */
  setUp(inherited: Inheritance | undefined): Promise<void> | undefined {
    this.#inherit(inherited);
    const started = performance.now();
    const finish = () => {
      this.timings.setup = performance.now() - started;
      for (const { kind, name } of this.definitions) this.scope.assertPermitted(kind, name);
      validate(this.scope.owner.id, this.definitions, { schemas: this.#checkSchemas });
    };
    for (const { permissions } of this.#contents.setups) this.#permit(permissions);
    let pending: Promise<void> | undefined;
    try {
      pending = this.#parts.host.runAs(this.scope, () => this.#runSetups(0));
    } catch (error) {
      throw this.#failed("setup", error);
    }
    if (pending === undefined) {
      finish();
      return undefined;
    }
    const { setupLimitMs } = this.#parts;
    return within(pending, setupLimitMs, `Set-up took longer than ${setupLimitMs} ms`).then(finish, (error: unknown) => {
      throw this.#failed("setup", error);
    });
  }

  /** Limits add up: what the manifest and every definition allow is allowed. */
  #permit(kinds: readonly string[] | undefined): void {
    if (kinds === undefined) return;
    const before = this.scope.permissions;
    this.scope.permissions = new Set(before === undefined ? kinds : kinds.filter((kind) => before.has(kind)));
  }

  #runSetups(from: number): Promise<void> | undefined {
    for (let index = from; index < this.#contents.setups.length; index++) {
      const result = this.#contents.setups[index]?.setup?.(this.#setup);
      if (isThenable(result)) return Promise.resolve(result).then(() => this.#runSetups(index + 1));
    }
    return undefined;
  }

  /** Hands the state over; what cannot be carried is dropped and said so (reload test 27). */
  #inherit(inherited: Inheritance | undefined): void {
    const { version, migrate } = this.#hotExport;
    this.#hot.version = version ?? inherited?.version;
    if (inherited === undefined || inherited.data === undefined) return;
    try {
      const data: unknown = structuredClone(inherited.data);
      if (version === inherited.version || version === undefined) {
        this.#hot.data = data;
      } else if (migrate !== undefined) {
        this.#hot.data = migrate(data, inherited.version);
      } else {
        throw new Error(
          `it is of version ${String(inherited.version)}, this code wants ${String(version)} and exports no migrate`,
        );
      }
    } catch (error) {
      const { owner, generation } = this.scope;
      const reason = new Error(`The state kept over the reload was dropped: ${errorMessage(error)}`, { cause: error });
      this.#parts.host.reportError({ owner: owner.id, event: "hot", error: reason, phase: "setup", generation });
    }
  }

  /** The entries for the swap. */
  goLive() {
    const { registry } = this.#parts.host;
    const own = this.#contents.contributes.map((definition) => registry.entry(definition, this.scope));
    return [...own, ...this.#setup.goLive()];
  }

  /** Tells the unit that this generation is live. */
  announceLive(reason: "startup" | "reload"): void {
    this.#setup.announceLive(reason);
  }

  /** Lets the unit hear, once, that this generation ends; bounded. */
  retire(reason: RetireReason): Promise<void> {
    return this.#setup.retire(reason);
  }

  /** Tells the unit and disposes what it owns. */
  async end(reason: RetireReason): Promise<void> {
    await this.retire(reason);
    await this.scope.dispose(ENDINGS[reason]);
  }

  /** Undoes a generation that never went live. */
  async discard(): Promise<void> {
    this.#parts.host.registry.swap({ remove: this.#parts.host.registry.ownedBy(this.scope) });
    await this.scope.dispose("it was not activated");
  }

  #failed(phase: "load" | "setup", error: unknown): ExtensionError {
    if (ExtensionError.is(error)) return error;
    const wrapped = new ExtensionError(this.scope.owner.id, phase, errorMessage(error), { cause: error });
    // The stack of the extension's code, not of this line.
    if (error instanceof Error && error.stack !== undefined) wrapped.stack = error.stack;
    return wrapped;
  }
}

function renewed(definition: AnyDefinition): AnyDefinition {
  return definition.kind === "service" ? define({ ...definition }) : definition;
}

function isHotExport(value: unknown): value is HotExport {
  if (typeof value !== "object" || value === null) return false;
  const { version, migrate } = value as Record<string, unknown>;
  const versionFits = version === undefined || typeof version === "string" || typeof version === "number";
  return versionFits && (migrate === undefined || typeof migrate === "function");
}

function isThenable(value: unknown): value is PromiseLike<void> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}

/** Rejects when `promise` has not settled in the time that counts; its late outcome is ignored. */
function within<T>(promise: Promise<T>, limitMs: number, message: string, spent?: () => number): Promise<T> {
  return new Promise((resolve, reject) => {
    let timer: NodeJS.Timeout | undefined;
    const expire = () => {
      const left = limitMs - (spent?.() ?? limitMs);
      if (left <= 0) reject(new Error(message));
      else timer = setTimeout(expire, left);
    };
    timer = setTimeout(expire, limitMs);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
