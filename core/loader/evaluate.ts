// Runs the modules of one generation: our wrapper, one module cache, injected globals. Invariant: within a generation a file is
// evaluated once, whoever imports it and however; nothing of it is reachable from the next generation.
import { dirname } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { fingerprint, type ReadFile, readStable, realPath } from "./files.ts";
import { nativeImport } from "./module-code.ts";
import { asBuiltin, type EvaluationOptions, ModuleGraph, type ModuleRecord, reaches, setJson } from "./module-graph.ts";
import { hasKey, namespaceOf, withDefaultKeys } from "./namespace.ts";
import { Requires } from "./require.ts";
import { isNative, ModuleNotFoundError } from "./resolve.ts";
import { ParseError, type TransformResult } from "./transform.ts";

export class Evaluation {
  readonly timings = { resolve: 0, transpile: 0 };
  readonly #options: EvaluationOptions;
  readonly #graph: ModuleGraph;
  readonly #requires: Requires;
  /** Modules in a circle, whose imports are checked when all of it is there. */
  readonly #unchecked = new Set<ModuleRecord>();
  /** Modules that wait for the transform worker, which all units share. */
  #transforming = 0;
  #progressAt = performance.now();

  constructor(options: EvaluationOptions) {
    this.#options = options;
    this.#graph = new ModuleGraph(options);
    this.#requires = new Requires(this.#graph, (specifier, importer) => this.#import(specifier, importer));
  }

  /** What was evaluated, as it was read. */
  get files(): ReadonlyMap<string, { fingerprint: string; hash: string }> {
    return this.#graph.files;
  }

  /** Candidates that were looked for and absent. */
  get missing(): ReadonlySet<string> {
    return this.#graph.missing;
  }

  /** Symbolic links that were followed. */
  get links(): ReadonlySet<string> {
    return this.#graph.links;
  }

  /** Import specifiers seen; the dialect of a pi-style unit is read from them. */
  get specifiers(): ReadonlySet<string> {
    return this.#graph.specifiers;
  }

  /** Told of files that are read, or looked for in vain, from now on: by an `import()` in a tool, for instance. */
  set onFile(listener: () => void) {
    this.#graph.onFile = listener;
  }

  /** Milliseconds in which nothing but the unit's own code was waited for. */
  get idleMs(): number {
    return this.#transforming > 0 ? 0 : performance.now() - this.#progressAt;
  }

  /** Evaluates a file and what it imports. @throws what the modules throw, parse errors and missing names. */
  async run(path: string): Promise<Record<string, unknown>> {
    const namespace = await this.#await(this.#recordOf(realPath(path) ?? path), undefined);
    for (const record of this.#unchecked) this.#checkLinks(record, true);
    this.#unchecked.clear();
    return namespace as Record<string, unknown>;
  }

  // ── Imports ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

  async #import(specifier: string, importer: ModuleRecord): Promise<unknown> {
    this.#options.assertLive(`import "${specifier}"`);
    this.#graph.specifiers.add(specifier);
    // What a module got once it gets again: an old version whose files are gone goes on with its own.
    const known = importer.targets.get(specifier);
    if (known !== undefined) return "state" in known ? this.#await(known, importer) : known.namespace;
    const started = performance.now();
    const location = this.#graph.locate(specifier, importer.path);
    this.timings.resolve += performance.now() - started;
    switch (location.kind) {
      case "virtual":
        return this.#keep(importer, specifier, await this.#options.virtualModules.load(specifier));
      case "builtin": {
        const own = this.#requires.ownModule(specifier);
        return this.#keep(importer, specifier, own ?? (await nativeImport("/")(asBuiltin(specifier))));
      }
      case "package":
        return this.#keep(importer, specifier, await this.#importPackage(location.specifier, importer));
      case "bare":
        return this.#importBare(specifier, importer);
      case "file":
        return this.#importFile(location.path, specifier, importer);
    }
  }

  async #importFile(path: string, specifier: string, importer: ModuleRecord): Promise<unknown> {
    const record = this.#recordOf(path);
    importer.targets.set(specifier, record);
    return this.#await(record, importer);
  }

  #keep(importer: ModuleRecord, specifier: string, namespace: unknown): unknown {
    const merged = withDefaultKeys(
      namespace,
      importer.imports.flatMap((one) => (one.specifier === specifier ? one.names : [])),
    );
    importer.targets.set(specifier, { namespace: merged });
    return merged;
  }

  async #importPackage(specifier: string, importer: ModuleRecord): Promise<unknown> {
    if (specifier.startsWith("/")) return nativeImport("/")(pathToFileURL(specifier).href);
    return nativeImport(dirname(importer.path))(specifier);
  }

  /** A linked source package, an alias of `imports`, or one of our own dependencies. */
  async #importBare(specifier: string, importer: ModuleRecord): Promise<unknown> {
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

  async #await(record: ModuleRecord, importer: ModuleRecord | undefined): Promise<unknown> {
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

  // ── Modules ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

  #recordOf(path: string): ModuleRecord {
    const known = this.#graph.records.get(path);
    if (known !== undefined) return known;
    let record: ModuleRecord | undefined;
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
    record = this.#graph.add(path, promise);
    return record;
  }

  async #load(record: ModuleRecord): Promise<void> {
    const file = await this.#read(record.path);
    if (record.path.endsWith(".json")) return setJson(record, file.text);
    const started = performance.now();
    const result = await this.#transformed(record.path, file.text);
    this.timings.transpile += performance.now() - started;
    record.imports = result.imports;
    for (const source of result.sources) this.#graph.specifiers.add(source);
    await this.#requires.compile(record, result.code, "async ")();
    record.module.loaded = true;
    this.#checkLinks(record, false);
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
    this.#graph.assertReadable(path);
    // Before the read: what became readable right after it failed would else be taken for what was tried.
    const state = fingerprint(path);
    let file: ReadFile;
    try {
      file = await readStable(path);
    } catch (error) {
      this.#graph.noteUnreadable(path, state);
      throw error;
    }
    this.#graph.note(path, file);
    return file;
  }

  /** Transforms what will be required, so that `require` finds it without blocking the event loop. */
  async #prepare(specifiers: readonly string[], importer: string, seen: Set<string>): Promise<void> {
    for (const specifier of specifiers) {
      if (this.#options.virtualModules.has(specifier)) await this.#options.virtualModules.load(specifier);
      const path = this.#fileOf(specifier, importer);
      if (path === undefined || path.endsWith(".json") || seen.has(path) || this.#graph.records.has(path)) continue;
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
      const location = this.#graph.locate(specifier, importer);
      return location.kind === "file" ? location.path : undefined;
    } catch {
      return undefined;
    }
  }

  /** Every statically imported name must exist; a circle is checked when all of it is there. */
  #checkLinks(record: ModuleRecord, final: boolean): void {
    for (const { specifier, names, line } of record.imports) {
      const target = record.targets.get(specifier);
      if (target === undefined || names.length === 0) continue;
      if ("state" in target && target.state !== "done") {
        if (!final) this.#unchecked.add(record);
        continue;
      }
      const namespace = "state" in target ? namespaceOf(target) : target.namespace;
      for (const name of names) {
        if (hasKey(namespace, name)) continue;
        const problem = `The module "${specifier}" does not provide an export named "${name}"; correct the import`;
        throw new ParseError(record.path, problem, line);
      }
    }
  }
}
