// Specifier → where the module is. Relative names follow TypeScript's habits (`./x.js` may be `x.ts`); every candidate that was
// looked for and not found is remembered, because its appearance changes the answer.
import { isBuiltin } from "node:module";
import { dirname, join, resolve as resolvePath, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { isDirectory, isFile, realPath } from "./files.ts";

export type Location =
  | { kind: "virtual"; specifier: string }
  | { kind: "builtin"; specifier: string }
  | { kind: "file"; path: string }
  /** In some `node_modules`: loaded by Node and never reloaded. */
  | { kind: "package"; specifier: string }
  /** Not found by walking up; the conditions of `exports` or `imports` may know it. */
  | { kind: "bare"; specifier: string };

export interface ResolverOptions {
  /** The unit's folder: `node_modules` above it do not make the unit itself native. */
  root: string;
  isVirtual(specifier: string): boolean;
  /** A file of this generation: it answers as it was read, whatever lies there now. */
  isKnown(path: string): boolean;
  /** A path that would have been taken, had it existed. */
  onMissing(path: string): void;
  /** A link that was followed; it may be pointed elsewhere. */
  onLink(path: string): void;
}

const EXTENSIONS = [".ts", ".tsx", ".mts", ".cts", ".js", ".mjs", ".cjs", ".jsx", ".json"];
/** What a written JavaScript extension may stand for in TypeScript sources. */
const SOURCES: Record<string, readonly string[]> = {
  ".js": [".ts", ".tsx"],
  ".mjs": [".mts"],
  ".cjs": [".cts"],
  ".jsx": [".tsx"],
};

/** True for files Node loads itself: those in a `node_modules` that is not above the unit. */
export function isNative(path: string, root: string): boolean {
  const below = path.startsWith(root + sep) ? path.slice(root.length) : path;
  return below.includes(`${sep}node_modules${sep}`);
}

/** An import that leads nowhere. */
export class ModuleNotFoundError extends Error {
  readonly code = "MODULE_NOT_FOUND";
  constructor(specifier: string, importer: string) {
    super(`Cannot find module "${specifier}" imported by ${importer}`);
  }
}

export class Resolver {
  readonly #options: ResolverOptions;

  constructor(options: ResolverOptions) {
    this.#options = options;
  }

  /** @throws {ModuleNotFoundError} for a relative or absolute path that leads nowhere. */
  locate(specifier: string, importer: string): Location {
    if (this.#options.isVirtual(specifier)) return { kind: "virtual", specifier };
    if (isBuiltin(specifier)) return { kind: "builtin", specifier };
    const path = pathOf(specifier, importer);
    if (path !== undefined) {
      const file = this.#probe(path);
      if (file === undefined) throw new ModuleNotFoundError(specifier, importer);
      return isNative(file, this.#options.root) ? { kind: "package", specifier: file } : { kind: "file", path: file };
    }
    if (/^[a-z][a-z0-9+.-]+:/i.test(specifier)) throw new ModuleNotFoundError(specifier, importer);
    return { kind: this.#installed(specifier, importer) ? "package" : "bare", specifier };
  }

  /** The file a path stands for, by real path. */
  #probe(path: string): string | undefined {
    for (const candidate of candidates(path)) {
      if (this.#options.isKnown(candidate)) return candidate;
      if (!isFile(candidate)) {
        this.#options.onMissing(candidate);
        continue;
      }
      const real = realPath(candidate);
      if (real === undefined) continue;
      if (real !== candidate) this.#options.onLink(candidate);
      return real;
    }
    return undefined;
  }

  /** True when a real package of that name lies in a `node_modules` above the importer; a linked source folder is none. */
  #installed(specifier: string, importer: string): boolean {
    const name = specifier.startsWith("@") ? specifier.split("/").slice(0, 2).join("/") : specifier.split("/")[0];
    if (name === undefined || name.startsWith("#")) return false;
    const { root, onMissing } = this.#options;
    for (let folder = dirname(importer); ; folder = dirname(folder)) {
      const candidate = join(folder, "node_modules", name);
      if (isDirectory(candidate)) {
        const real = realPath(candidate);
        return real !== undefined && isNative(real + sep, root);
      }
      // Above the unit's parent an appearing package is found at the next load; watching `/` for it would be noise.
      if (folder.startsWith(root) || folder === dirname(root)) onMissing(join(candidate, "package.json"));
      if (folder === dirname(folder)) return false;
    }
  }
}

function pathOf(specifier: string, importer: string): string | undefined {
  if (specifier.startsWith("file:")) return fileURLToPath(specifier);
  if (specifier.startsWith("/")) return specifier;
  if (/^\.\.?(\/|$)/.test(specifier)) {
    const path = resolvePath(dirname(importer), specifier);
    return specifier.endsWith("/") ? path + sep : path;
  }
  return undefined;
}

function* candidates(written: string): Generator<string> {
  const path = written.endsWith(sep) ? written.slice(0, -1) : written;
  if (path === written) {
    yield path;
    const query = path.indexOf("?");
    if (query > 0) yield path.slice(0, query);
    const extension = /\.[mc]?jsx?$/.exec(path)?.[0];
    if (extension !== undefined) {
      for (const source of SOURCES[extension] ?? []) yield path.slice(0, -extension.length) + source;
    }
    for (const added of EXTENSIONS) yield path + added;
  }
  for (const added of EXTENSIONS) yield join(path, `index${added}`);
}
