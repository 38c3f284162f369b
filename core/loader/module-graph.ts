// The modules of one generation and what was seen on disk while they were found. Invariant: one record per real path, so that a
// file is evaluated once, whoever asks for it and however.
import { createRequire } from "node:module";
import { dirname } from "node:path";
import { pathToFileURL } from "node:url";
import { errorMessage } from "../kernel/errors.ts";
import { HeldFileError, type ReadFile } from "./files.ts";
import type { OwnedGlobals } from "./globals.ts";
import { type Location, Resolver } from "./resolve.ts";
import { ParseError, type Transformer, type TransformResult } from "./transform.ts";
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

/** What the code of a module knows as `module`. */
export interface CommonModule {
  exports: unknown;
  readonly id: string;
  readonly filename: string;
  readonly path: string;
  loaded: boolean;
  readonly children: unknown[];
  readonly paths: string[];
  require: unknown;
}

/** One evaluated, or running, module. */
export interface ModuleRecord {
  readonly path: string;
  readonly module: CommonModule;
  readonly promise: Promise<void>;
  state: "running" | "done" | "failed";
  error: unknown;
  /** Records whose completion this one awaits now; an import that would close a circle is answered with what is there. */
  readonly waitsFor: Map<ModuleRecord, number>;
  imports: TransformResult["imports"];
  /** Specifier → what the static import got. */
  readonly targets: Map<string, ModuleRecord | { namespace: unknown }>;
  namespace: unknown;
}

export class ModuleGraph {
  readonly options: EvaluationOptions;
  /** By real path. */
  readonly records = new Map<string, ModuleRecord>();
  /** What was evaluated, as it was read. */
  readonly files = new Map<string, { fingerprint: string; hash: string }>();
  /** Candidates that were looked for and absent. */
  readonly missing = new Set<string>();
  /** Symbolic links that were followed. */
  readonly links = new Set<string>();
  /** Import specifiers seen; the dialect of a pi-style unit is read from them. */
  readonly specifiers = new Set<string>();
  /** Told of every file that is read from now on. */
  onFile: (() => void) | undefined;
  readonly #resolver: Resolver;

  constructor(options: EvaluationOptions) {
    this.options = options;
    this.#resolver = new Resolver({
      root: options.root,
      isVirtual: (specifier) => options.virtualModules.has(specifier),
      isKnown: (path) => this.records.has(path),
      onMissing: (path) => {
        this.missing.add(path);
        this.onFile?.();
      },
      onLink: (path) => this.links.add(path),
    });
  }

  /** Where a specifier leads. @throws {ModuleNotFoundError} for a path that leads nowhere. */
  locate(specifier: string, importer: string): Location {
    return this.#resolver.locate(specifier, importer);
  }

  /** `import.meta.resolve`. */
  resolve(specifier: string, importer: string): string {
    const location = this.locate(specifier, importer);
    if (location.kind === "file") return pathToFileURL(location.path).href;
    if (location.kind === "virtual") return specifier;
    if (location.kind === "builtin") return asBuiltin(specifier);
    return pathToFileURL(createRequire(importer).resolve(specifier)).href;
  }

  /** Adds a module that `promise` brings to its end. */
  add(path: string, promise: Promise<void>): ModuleRecord {
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
    const record: ModuleRecord = {
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
    this.records.set(path, record);
    return record;
  }

  /** Remembers the state a file was read in. */
  note(path: string, { fingerprint, hash }: Omit<ReadFile, "text">): void {
    this.files.set(path, { fingerprint, hash });
    this.onFile?.();
  }

  /** Remembers a file that could not be read, with the state before the try: it is watched for becoming readable. */
  noteUnreadable(path: string, state: string | null): void {
    if (state === null) this.missing.add(path);
    else this.note(path, { fingerprint: state, hash: "" });
  }

  /** @throws {HeldFileError} */
  assertReadable(path: string): void {
    if (this.options.mayRead?.(path) === false) throw new HeldFileError(path);
  }
}

export function asBuiltin(specifier: string): string {
  return specifier.startsWith("node:") ? specifier : `node:${specifier}`;
}

/** True when `from` waits, over any number of records, for `to`. */
export function reaches(from: ModuleRecord, to: ModuleRecord): boolean {
  const seen = new Set<ModuleRecord>();
  const open = [from];
  for (let record = open.pop(); record !== undefined; record = open.pop()) {
    if (record === to) return true;
    if (seen.has(record)) continue;
    seen.add(record);
    open.push(...record.waitsFor.keys());
  }
  return false;
}

/** Fills a record from JSON. @throws {SyntaxError} that names the file. */
export function setJson(record: ModuleRecord, text: string): void {
  const json = text.replace(/^\uFEFF/, "");
  try {
    record.module.exports = JSON.parse(json);
  } catch (error) {
    const message = errorMessage(error);
    const position = /^(.*?)(?: in JSON)? at position (\d+)/.exec(message);
    if (position === null) throw new ParseError(record.path, message);
    const before = json.slice(0, Number(position[2])).split("\n");
    throw new ParseError(record.path, position[1] ?? message, before.length, before.at(-1)?.length);
  }
  record.module.loaded = true;
}
