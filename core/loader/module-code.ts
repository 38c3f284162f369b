// Text → running code: the function that wraps a module, and Node's own `import()` for what Node loads.
import { dirname } from "node:path";
import { pathToFileURL } from "node:url";
import vm from "node:vm";
import { GLOBAL_NAMES } from "./globals.ts";
import type { ModuleRecord } from "./module-graph.ts";

/** How the code of one module reaches others. */
export interface ModuleDoors {
  import(specifier: unknown): Promise<unknown>;
  resolve(specifier: unknown): string;
  require: unknown;
  /** In the order of `GLOBAL_NAMES`. */
  globals: readonly unknown[];
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

/** A transformed module as a function that runs it. `asyncWord` allows an `await` at its top. */
export function moduleCode(record: ModuleRecord, code: string, asyncWord: "async " | "", doors: ModuleDoors): () => unknown {
  const before = `${head}${asyncWord}${parameters}`;
  const outer = compile(before + code + tail, record.path, -before.length) as (
    ...injected: unknown[]
  ) => (...own: unknown[]) => unknown;
  const { module, path } = record;
  module.require = doors.require;
  const meta = { url: pathToFileURL(path).href, filename: path, dirname: dirname(path), resolve: doors.resolve };
  const inner = outer(doors.import, doors.resolve, meta, ...doors.globals);
  return () => inner.call(module.exports, module.exports, doors.require, module, path, dirname(path));
}

const MAX_NATIVE_IMPORTS = 500;
const nativeImports = new Map<string, (specifier: string) => Promise<unknown>>();

/** Node's own `import()`, resolved from a folder. */
export function nativeImport(folder: string): (specifier: string) => Promise<unknown> {
  let load = nativeImports.get(folder);
  if (load === undefined) {
    const native = compile("(specifier) => import(specifier)", `${folder}/import`) as (specifier: string) => Promise<unknown>;
    load = (specifier) => withoutWarning(() => native(specifier));
    nativeImports.set(folder, load);
    if (nativeImports.size > MAX_NATIVE_IMPORTS) for (const key of nativeImports.keys()) if (nativeImports.delete(key)) break;
  }
  return load;
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
