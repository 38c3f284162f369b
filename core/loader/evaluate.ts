// Runs the modules of one generation: our wrapper, one module cache, injected globals. Invariant: within a generation a file is
// evaluated once, whoever imports it and however; nothing of it is reachable from the next generation.

import * as nodeModule from "node:module";
import { createRequire } from "node:module";
import { dirname } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import vm from "node:vm";
import { fingerprint, type ReadFile, readNow, readStable, realPath } from "./files.ts";
import { GLOBAL_NAMES, type OwnedGlobals } from "./globals.ts";
import { isNative, ModuleNotFoundError, Resolver } from "./resolve.ts";
import type { Transformer, TransformResult } from "./transform.ts";
import type { VirtualModules } from "./virtual-modules.ts";

export interface EvaluationOptions {
  /** The unit's folder by real path. */
  root: string;
  transformer: Transformer;
  /** Modules handed in instead of anything on disk. */
  virtualModules: VirtualModules;
  globals: OwnedGlobals;
  /** Throws once the generation is gone, so that a late `import()` of an old version starts nothing. */
  assertLive(action: string): void;
  /** False for a file that must not be read now. */
  mayRead?: ((realPath: string) => boolean) | undefined;
}

/** A module is a file that must not be read now: the load is put off, it has not failed. */
export class HeldFileError extends Error {
  constructor(path: string) {
    super(`${path} waits for the consent of the person in front of the host`);
  }
}

interface Record_ {
  readonly path: string;
  readonly module: CommonModule;
  readonly promise: Promise<void>;
  state: "running" | "done" | "failed";
  error: unknown;
  /** Records whose completion this one awaits now; an import that would close a circle is answered with what is there. */
  readonly waitsFor: Map<Record_, number>;
  imports: TransformResult["imports"];
  /** Specifier → what the static import got. */
  readonly targets: Map<string, Record_ | { namespace: unknown }>;
  namespace: unknown;
}

interface CommonModule {
  exports: unknown;
  readonly id: string;
  readonly filename: string;
  readonly path: string;
  loaded: boolean;
  readonly children: unknown[];
  readonly paths: string[];
  require: unknown;
}

// Injected names live in an outer function, so that a module may declare its own `process` or `setTimeout`.
const head = `(function(jitiImport,jitiESMResolve,__meta,${GLOBAL_NAMES.join(",")}){return `;
const parameters = "function(exports,require,module,__filename,__dirname){";
const tail = "\n}})";

/** Compiles a script whose `import()` is Node's own. */
function compile(code: string, filename: string, columnOffset = 0): unknown {
  const importModuleDynamically = vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER;
  return vm.runInThisContext(code, { filename, columnOffset, importModuleDynamically });
}

let warned = false;

/** Node announces once per process that such an `import()` is experimental; users of the daemon cannot act on it. */
function withoutWarning<T>(run: () => T): T {
  if (warned) return run();
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    return run();
  } finally {
    process.emitWarning = emitWarning;
    warned = true;
  }
}

const nativeImports = new Map<string, (specifier: string) => Promise<unknown>>();

/** Node's own `import()`, resolved from a folder. */
function nativeImport(folder: string): (specifier: string) => Promise<unknown> {
  let load = nativeImports.get(folder);
  if (load === undefined) {
    const native = compile("(specifier) => import(specifier)", `${folder}/import`) as (specifier: string) => Promise<unknown>;
    load = (specifier) => withoutWarning(() => native(specifier));
    nativeImports.set(folder, load);
    if (nativeImports.size > 500) for (const key of nativeImports.keys()) if (nativeImports.delete(key)) break;
  }
  return load;
}

export class Evaluation {
  /** What was evaluated, as it was read. */
  readonly files = new Map<string, { fingerprint: string; hash: string }>();
  /** Candidates that were looked for and absent. */
  readonly missing = new Set<string>();
  /** Symbolic links that were followed. */
  readonly links = new Set<string>();
  /** Import specifiers seen; the dialect of a pi-style unit is read from them. */
  readonly specifiers = new Set<string>();
  readonly timings = { resolve: 0, transpile: 0 };
  /** Modules that wait for the transform worker, which all units share. */
  #transforming = 0;
  #progressAt = performance.now();
  readonly #options: EvaluationOptions;
  readonly #resolver: Resolver;
  readonly #records = new Map<string, Record_>();
  readonly #unchecked = new Set<Record_>();
  #nodeModuleNamespace: Record<string, unknown> | undefined;

  constructor(options: EvaluationOptions) {
    this.#options = options;
    this.#resolver = new Resolver({
      root: options.root,
      isVirtual: (specifier) => options.virtualModules.has(specifier),
      onMissing: (path) => this.missing.add(path),
      onLink: (path) => this.links.add(path),
    });
  }

  /** Evaluates a file and what it imports. @throws what the modules throw, parse errors and missing names. */
  async run(path: string): Promise<Record<string, unknown>> {
    const namespace = await this.#await(this.#recordOf(realPath(path) ?? path), undefined);
    for (const record of this.#unchecked) this.#checkLinks(record, true);
    this.#unchecked.clear();
    return namespace as Record<string, unknown>;
  }

  // ── Imports ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

  async #import(specifier: string, importer: Record_): Promise<unknown> {
    this.#options.assertLive(`import "${specifier}"`);
    this.specifiers.add(specifier);
    const started = performance.now();
    const location = this.#resolver.locate(specifier, importer.path);
    this.timings.resolve += performance.now() - started;
    switch (location.kind) {
      case "virtual":
        return this.#keep(importer, specifier, await this.#options.virtualModules.load(specifier));
      case "builtin":
        return this.#keep(importer, specifier, this.#ownModule(specifier) ?? (await nativeImport("/")(asBuiltin(specifier))));
      case "package":
        return this.#keep(importer, specifier, await this.#importPackage(location.specifier, importer));
      case "bare":
        return this.#importBare(specifier, importer);
      case "file":
        return this.#importFile(location.path, specifier, importer);
    }
  }

  async #importFile(path: string, specifier: string, importer: Record_): Promise<unknown> {
    const record = this.#recordOf(path);
    importer.targets.set(specifier, record);
    return this.#await(record, importer);
  }

  #keep(importer: Record_, specifier: string, namespace: unknown): unknown {
    const merged = withDefaultKeys(
      namespace,
      importer.imports.flatMap((one) => (one.specifier === specifier ? one.names : [])),
    );
    importer.targets.set(specifier, { namespace: merged });
    return merged;
  }

  async #importPackage(specifier: string, importer: Record_): Promise<unknown> {
    if (specifier.startsWith("/")) return nativeImport("/")(pathToFileURL(specifier).href);
    return nativeImport(dirname(importer.path))(specifier);
  }

  /** A linked source package, an alias of `imports`, or one of our own dependencies. */
  async #importBare(specifier: string, importer: Record_): Promise<unknown> {
    const { transformer, root } = this.#options;
    const url = await transformer.resolve(specifier, pathToFileURL(importer.path).href);
    if (url?.startsWith("node:")) return this.#keep(importer, specifier, await nativeImport("/")(url));
    if (url?.startsWith("file:")) {
      const path = realPath(fileURLToPath(url)) ?? fileURLToPath(url);
      if (!isNative(path, root)) return this.#importFile(path, specifier, importer);
      return this.#keep(importer, specifier, await nativeImport("/")(pathToFileURL(path).href));
    }
    const ours = await transformer.resolve(specifier, import.meta.url);
    if (ours === undefined) throw new ModuleNotFoundError(specifier, importer.path);
    return this.#keep(importer, specifier, await nativeImport("/")(ours));
  }

  async #await(record: Record_, importer: Record_ | undefined): Promise<unknown> {
    if (record.state === "running" && importer !== undefined && reaches(record, importer)) return namespaceOf(record);
    importer?.waitsFor.set(record, (importer.waitsFor.get(record) ?? 0) + 1);
    try {
      await record.promise;
    } finally {
      const left = (importer?.waitsFor.get(record) ?? 1) - 1;
      if (left === 0) importer?.waitsFor.delete(record);
      else importer?.waitsFor.set(record, left);
    }
    return namespaceOf(record);
  }

  // ── Records ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

  #recordOf(path: string): Record_ {
    const known = this.#records.get(path);
    if (known !== undefined) return known;
    let record: Record_ | undefined;
    const promise = Promise.resolve().then(async () => {
      if (record === undefined) return;
      try {
        await this.#load(record);
        record.state = "done";
      } catch (error) {
        record.state = "failed";
        record.error = error;
        throw error;
      }
    });
    // Somebody always awaits it, but perhaps only after it has failed.
    promise.catch(() => {});
    record = this.#newRecord(path, promise);
    return record;
  }

  #newRecord(path: string, promise: Promise<void>): Record_ {
    const module: CommonModule = {
      exports: {},
      id: path,
      filename: path,
      path: dirname(path),
      loaded: false,
      children: [],
      paths: [],
      require: undefined,
    };
    const record: Record_ = {
      path,
      module,
      promise,
      state: "running",
      error: undefined,
      waitsFor: new Map(),
      imports: [],
      targets: new Map(),
      namespace: undefined,
    };
    this.#records.set(path, record);
    return record;
  }

  async #load(record: Record_): Promise<void> {
    const file = await this.#read(record.path);
    if (record.path.endsWith(".json")) return setJson(record, file.text);
    const started = performance.now();
    const result = await this.#transformed(record.path, file.text);
    this.timings.transpile += performance.now() - started;
    record.imports = result.imports;
    for (const source of result.sources) this.specifiers.add(source);
    const body = this.#compile(record, result.code, "async ");
    await body(record);
    record.module.loaded = true;
    this.#checkLinks(record, false);
  }

  /** Milliseconds in which nothing but the unit's own code was waited for. */
  get idleMs(): number {
    return this.#transforming > 0 ? 0 : performance.now() - this.#progressAt;
  }

  async #transformed(path: string, source: string): Promise<TransformResult> {
    this.#transforming++;
    try {
      const result = await this.#options.transformer.transform({ filename: path, source, async: true });
      await this.#prepare(result.requires, path, new Set([path]));
      return result;
    } finally {
      this.#transforming--;
      this.#progressAt = performance.now();
    }
  }

  async #read(path: string): Promise<ReadFile> {
    this.#assertReadable(path);
    let file: ReadFile;
    try {
      file = await readStable(path);
    } catch (error) {
      // Unreadable is not absent: it is watched for becoming readable.
      const state = fingerprint(path);
      if (state === null) this.missing.add(path);
      else this.files.set(path, { fingerprint: state, hash: "" });
      throw error;
    }
    this.files.set(path, { fingerprint: file.fingerprint, hash: file.hash });
    return file;
  }

  /** Transforms what will be required, so that `require` finds it without blocking the event loop. */
  async #prepare(specifiers: readonly string[], importer: string, seen: Set<string>): Promise<void> {
    for (const specifier of specifiers) {
      if (this.#options.virtualModules.has(specifier)) await this.#options.virtualModules.load(specifier);
      const path = this.#fileOf(specifier, importer);
      if (path === undefined || path.endsWith(".json") || seen.has(path) || this.#records.has(path)) continue;
      seen.add(path);
      try {
        const file = await readStable(path);
        const request = { filename: path, source: file.text, async: false };
        const result = await this.#options.transformer.transform(request);
        await this.#prepare(result.requires, path, seen);
      } catch {
        // The `require` itself reports it, if it is reached at all.
      }
    }
  }

  #fileOf(specifier: string, importer: string): string | undefined {
    try {
      const location = this.#resolver.locate(specifier, importer);
      return location.kind === "file" ? location.path : undefined;
    } catch {
      return undefined;
    }
  }

  #compile(record: Record_, code: string, asyncWord: "async " | ""): (record: Record_) => unknown {
    const before = `${head}${asyncWord}${parameters}`;
    const outer = compile(before + code + tail, record.path, -before.length) as (
      ...injected: unknown[]
    ) => (...own: unknown[]) => unknown;
    const { module, path } = record;
    const require = this.#requireOf(record);
    module.require = require;
    const importing = (specifier: unknown) => this.#import(String(specifier), record);
    const resolving = (specifier: unknown) => this.#metaResolve(String(specifier), record.path);
    const meta = { url: pathToFileURL(path).href, filename: path, dirname: dirname(path), resolve: resolving };
    const inner = outer(importing, resolving, meta, ...this.#options.globals.values);
    return () => inner.call(module.exports, module.exports, require, module, path, dirname(path));
  }

  /** Every statically imported name must exist; a circle is checked when all of it is there. */
  #checkLinks(record: Record_, final: boolean): void {
    for (const { specifier, names } of record.imports) {
      const target = record.targets.get(specifier);
      if (target === undefined || names.length === 0) continue;
      if ("state" in target && target.state !== "done") {
        if (!final) this.#unchecked.add(record);
        continue;
      }
      const namespace = "state" in target ? namespaceOf(target) : target.namespace;
      for (const name of names) {
        if (hasKey(namespace, name)) continue;
        throw new SyntaxError(
          `${record.path}: The module "${specifier}" does not provide an export named "${name}"; correct the import`,
        );
      }
    }
  }

  // ── require ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

  #requireOf(importer: Record_) {
    const require = (specifier: string) => this.#require(String(specifier), importer.path);
    const resolve = (specifier: string) => {
      const location = this.#resolver.locate(specifier, importer.path);
      return location.kind === "file" ? location.path : createRequire(importer.path).resolve(specifier);
    };
    return Object.assign(require, { resolve, cache: Object.create(null), main: undefined, extensions: Object.create(null) });
  }

  #require(specifier: string, importer: string): unknown {
    this.#options.assertLive(`require "${specifier}"`);
    this.specifiers.add(specifier);
    const location = this.#resolver.locate(specifier, importer);
    switch (location.kind) {
      case "virtual":
        return this.#options.virtualModules.now(specifier);
      case "builtin":
        return this.#ownModule(specifier)?.["default"] ?? createRequire(import.meta.url)(specifier);
      case "file":
        return this.#requireFile(location.path);
      default:
        return this.#requirePackage(location.specifier, importer);
    }
  }

  #requirePackage(specifier: string, importer: string): unknown {
    for (const from of [importer, import.meta.url]) {
      try {
        const path = createRequire(from).resolve(specifier);
        return isNative(path, this.#options.root) ? createRequire(from)(path) : this.#requireFile(path);
      } catch (error) {
        const code = (error as NodeJS.ErrnoException).code;
        if (code !== "MODULE_NOT_FOUND" || !String((error as Error).message).includes(specifier)) throw error;
      }
    }
    throw new ModuleNotFoundError(specifier, importer);
  }

  #requireFile(path: string): unknown {
    const known = this.#records.get(path);
    if (known?.state === "failed") throw known.error;
    // One that is running is part of a circle: CommonJS hands out what is there.
    if (known !== undefined) return known.module.exports;
    const record = this.#newRecord(path, Promise.resolve());
    try {
      this.#loadNow(record);
      record.state = "done";
    } catch (error) {
      record.state = "failed";
      record.error = error;
      throw error;
    }
    return record.module.exports;
  }

  #assertReadable(path: string): void {
    if (this.#options.mayRead?.(path) === false) throw new HeldFileError(path);
  }

  #loadNow(record: Record_): void {
    this.#assertReadable(record.path);
    const file = readNow(record.path);
    this.files.set(record.path, { fingerprint: file.fingerprint, hash: file.hash });
    if (record.path.endsWith(".json")) return setJson(record, file.text);
    const request = { filename: record.path, source: file.text, async: false };
    const result = this.#options.transformer.transformSync(request);
    this.#compile(record, result.code, "")(record);
    record.module.loaded = true;
  }

  #metaResolve(specifier: string, importer: string): string {
    const location = this.#resolver.locate(specifier, importer);
    if (location.kind === "file") return pathToFileURL(location.path).href;
    if (location.kind === "virtual") return specifier;
    if (location.kind === "builtin") return asBuiltin(specifier);
    return pathToFileURL(createRequire(importer).resolve(specifier)).href;
  }

  /** Node's modules that would go round the generation's ownership. */
  #ownModule(specifier: string): Record<string, unknown> | undefined {
    const name = specifier.replace(/^node:/, "");
    if (name !== "module") return this.#options.globals.module(name);
    if (this.#nodeModuleNamespace === undefined) {
      const create = (from: string | URL) => {
        const path = String(from).startsWith("file:") ? fileURLToPath(from) : String(from);
        const require = (wanted: string) => this.#require(wanted, path);
        return Object.assign(require, {
          resolve: (wanted: string) => fileURLToPath(this.#metaResolve(wanted, path)),
          cache: Object.create(null),
        });
      };
      const real = nodeModule.default;
      // What is written stays with the generation: all of the daemon loads its packages through the real one.
      const written: Record<string | symbol, unknown> = { createRequire: create };
      const own = new Proxy(real, {
        get: (_, key) => (Object.hasOwn(written, key) ? written[key] : Reflect.get(real, key)),
        set: (_, key, value) => {
          written[key] = value;
          return true;
        },
      });
      this.#nodeModuleNamespace = { ...nodeModule, createRequire: create, default: own };
    }
    return this.#nodeModuleNamespace;
  }
}

function asBuiltin(specifier: string): string {
  return specifier.startsWith("node:") ? specifier : `node:${specifier}`;
}

/** True when `from` waits, over any number of records, for `to`. */
function reaches(from: Record_, to: Record_): boolean {
  const seen = new Set<Record_>();
  const open = [from];
  for (let record = open.pop(); record !== undefined; record = open.pop()) {
    if (record === to) return true;
    if (seen.has(record)) continue;
    seen.add(record);
    open.push(...record.waitsFor.keys());
  }
  return false;
}

function setJson(record: Record_, text: string): void {
  try {
    record.module.exports = JSON.parse(text.replace(/^\uFEFF/, ""));
  } catch (error) {
    throw new SyntaxError(`${record.path}: ${error instanceof Error ? error.message : String(error)}`);
  }
  record.module.loaded = true;
}

/** What `import * as` gives: an ES module's exports as they are, anything else as the default with its own keys beside it. */
function namespaceOf(record: Record_): unknown {
  const value = record.module.exports;
  if (isObjectLike(value) && "__esModule" in value && value.__esModule) return value;
  if (record.state === "done" && record.namespace !== undefined) return record.namespace;
  record.namespace = { ...(isObjectLike(value) ? value : {}), default: value };
  return record.namespace;
}

/** Node's lexer does not see every name of a CommonJS package; the ones asked for are taken from its default export. */
function withDefaultKeys(namespace: unknown, names: readonly string[]): unknown {
  if (!isObjectLike(namespace) || names.every((name) => name in namespace)) return namespace;
  const whole = "default" in namespace ? namespace.default : undefined;
  if (!isObjectLike(whole)) return "default" in namespace ? namespace : { ...namespace, default: namespace };
  if (!names.some((name) => !(name in namespace) && name in whole)) return namespace;
  return { ...whole, ...namespace };
}

function hasKey(namespace: unknown, name: string): boolean {
  return isObjectLike(namespace) && name in namespace;
}

function isObjectLike(value: unknown): value is object {
  return (typeof value === "object" && value !== null) || typeof value === "function";
}
