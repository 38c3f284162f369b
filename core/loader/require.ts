// `require` of one generation: synchronous, over the same records as `import`.
import * as nodeModule from "node:module";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { fingerprint, type ReadFile, readNow } from "./files.ts";
import { moduleCode } from "./module-code.ts";
import { type ModuleGraph, type ModuleRecord, setJson } from "./module-graph.ts";
import { isNative, ModuleNotFoundError } from "./resolve.ts";

export class Requires {
  readonly #graph: ModuleGraph;
  readonly #import: (specifier: string, importer: ModuleRecord) => Promise<unknown>;
  #nodeModule: Record<string, unknown> | undefined;

  /** @param importing what `import()` in a required module does. */
  constructor(graph: ModuleGraph, importing: (specifier: string, importer: ModuleRecord) => Promise<unknown>) {
    this.#graph = graph;
    this.#import = importing;
  }

  /** A transformed module as a function that runs it. */
  compile(record: ModuleRecord, code: string, asyncWord: "async " | ""): () => unknown {
    return moduleCode(record, code, asyncWord, {
      import: (specifier) => this.#import(String(specifier), record),
      resolve: (specifier) => this.#graph.resolve(String(specifier), record.path),
      require: this.#requireOf(record),
      globals: this.#graph.options.globals.values,
    });
  }

  /** Node's modules that would go round the generation's ownership; undefined for the others. */
  ownModule(specifier: string): Record<string, unknown> | undefined {
    const name = specifier.replace(/^node:/, "");
    if (name !== "module") return this.#graph.options.globals.module(name);
    this.#nodeModule ??= this.#ownNodeModule();
    return this.#nodeModule;
  }

  #requireOf(importer: ModuleRecord) {
    const require = (specifier: string) => this.#require(String(specifier), importer.path);
    const resolve = (specifier: string) => {
      const location = this.#graph.locate(specifier, importer.path);
      return location.kind === "file" ? location.path : createRequire(importer.path).resolve(specifier);
    };
    return Object.assign(require, { resolve, cache: Object.create(null), main: undefined, extensions: Object.create(null) });
  }

  #require(specifier: string, importer: string): unknown {
    const { options, specifiers } = this.#graph;
    options.assertLive(`require "${specifier}"`);
    specifiers.add(specifier);
    const location = this.#graph.locate(specifier, importer);
    switch (location.kind) {
      case "virtual":
        return options.virtualModules.now(specifier);
      case "builtin":
        return this.ownModule(specifier)?.["default"] ?? createRequire(import.meta.url)(specifier);
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
        return isNative(path, this.#graph.options.root) ? createRequire(from)(path) : this.#requireFile(path);
      } catch (error) {
        const code = (error as NodeJS.ErrnoException).code;
        if (code !== "MODULE_NOT_FOUND" || !String((error as Error).message).includes(specifier)) throw error;
      }
    }
    throw new ModuleNotFoundError(specifier, importer);
  }

  #requireFile(path: string): unknown {
    const known = this.#graph.records.get(path);
    if (known?.state === "failed") throw known.error;
    // One that is running is part of a circle: CommonJS hands out what is there.
    if (known !== undefined) return known.module.exports;
    const record = this.#graph.add(path, Promise.resolve());
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

  #loadNow(record: ModuleRecord): void {
    this.#graph.assertReadable(record.path);
    const file = this.#read(record.path);
    this.#graph.note(record.path, file);
    if (record.path.endsWith(".json")) return setJson(record, file.text);
    const request = { filename: record.path, source: file.text, async: false };
    const result = this.#graph.options.transformer.transformSync(request);
    this.compile(record, result.code, "")();
    record.module.loaded = true;
  }

  #read(path: string): ReadFile {
    const state = fingerprint(path);
    try {
      return readNow(path);
    } catch (error) {
      this.#graph.noteUnreadable(path, state);
      throw error;
    }
  }

  #ownNodeModule(): Record<string, unknown> {
    const create = (from: string | URL) => {
      const path = String(from).startsWith("file:") ? fileURLToPath(from) : String(from);
      const require = (wanted: string) => this.#require(wanted, path);
      return Object.assign(require, {
        resolve: (wanted: string) => fileURLToPath(this.#graph.resolve(wanted, path)),
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
    return { ...nodeModule, createRequire: create, default: own };
  }
}
