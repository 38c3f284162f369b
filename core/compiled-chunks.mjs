// Runs the bundle's chunks with V8's code cache: compiling them anew at each start costs half of it, and Node 20 keeps no cache of
// modules. build.mjs turns each chunk into a script (`NAME.code`) with this file's signature, and leaves an ES module of the old name
// that re-exports what `load` gives, so that every door and every lazy import sees one instance. The caches belong to one version of
// V8 and lie beside the chunks in a folder of its name; where there is none for the Node that runs, it is made once, a while after
// the start. Without a cache, or with one that V8 rejects, all works the same and starts slower.
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { Script } from "node:vm";
import { isMainThread } from "node:worker_threads";

const here = new URL(".", import.meta.url);
const caches = new URL(`cache-${process.versions.v8}-${process.arch}/`, here);
/** After the start is over, and long enough for what runs first to have been compiled as well. */
const SAVE_AFTER_MS = 5_000;

/** @type {Map<string, { exports: Record<string, unknown> }>} */
const modules = new Map();
/** @type {Map<string, import("node:vm").Script>} */
const scripts = new Map();
/** Chunks that came without a cache, or with one that does not fit. @type {Set<string>} */
const uncached = new Set();
/** Rejected once the flags of V8 are others than at the start: what is made then would be rejected at the next one. */
const probe = new Script("0").createCachedData();
let waiting = false;

/**
 * The exports of a chunk, evaluated at the first call.
 * @param {string} name File name of the chunk without `.js`.
 * @returns {Record<string, unknown>}
 */
export function load(name) {
  const known = modules.get(name);
  if (known !== undefined) return known.exports;
  const module = { exports: {} };
  modules.set(name, module);
  const url = new URL(`${name}.js`, here);
  const nodeRequire = createRequire(url);
  /** @param {string} id */
  const require = (id) => (id.startsWith("./") && id.endsWith(".js") ? load(id.slice(2, -3)) : nodeRequire(id));
  require.resolve = nodeRequire.resolve;
  /** @param {string} id */
  const resolve = (id) => pathToFileURL(nodeRequire.resolve(id)).href;
  /** @param {string} specifier */
  const importFrom = (specifier) => import(specifier.startsWith(".") ? new URL(specifier, url).href : specifier);
  try {
    compile(name).runInThisContext()(module.exports, require, module, url.href, resolve, importFrom);
  } catch (error) {
    modules.delete(name);
    throw error;
  }
  return module.exports;
}

/**
 * Writes the caches of all chunks that were loaded, with what was compiled since.
 * @param {Iterable<string>} names
 */
export function saveCaches(names = scripts.keys()) {
  mkdirSync(caches, { recursive: true });
  for (const name of names) {
    const script = scripts.get(name);
    if (script === undefined) continue;
    const scratch = new URL(`${name}.${process.pid}.tmp`, caches);
    writeFileSync(scratch, script.createCachedData());
    renameSync(scratch, cacheOf(name));
  }
}

/** @param {string} name */
function compile(name) {
  const cachedData = cached(name);
  // The cache holds the file name: one without a folder lets the installation be moved.
  const script = new Script(readFileSync(new URL(`${name}.code`, here), "utf8"), { filename: `mortise/${name}.js`, cachedData });
  scripts.set(name, script);
  if (cachedData === undefined || script.cachedDataRejected) saveLater(name);
  return script;
}

/** @param {string} name */
function cached(name) {
  try {
    return readFileSync(cacheOf(name));
  } catch {
    return undefined;
  }
}

/** @param {string} name */
function cacheOf(name) {
  return new URL(`${name}.cache`, caches);
}

/** @param {string} name */
function saveLater(name) {
  // V8 rejects what was made under other flags, so a process that was given some leaves none for the others.
  if (!isMainThread || process.execArgv.length > 0 || process.env.NODE_OPTIONS) return;
  uncached.add(name);
  if (waiting) return;
  waiting = true;
  setTimeout(() => {
    waiting = false;
    saveNext();
  }, SAVE_AFTER_MS).unref();
}

/** One chunk at a time: a large one takes some milliseconds. An installation that cannot be written has none. */
function saveNext() {
  const [name] = uncached;
  if (name === undefined) return;
  uncached.delete(name);
  try {
    if (new Script("0", { filename: "mortise/probe.js", cachedData: probe }).cachedDataRejected) uncached.clear();
    else saveCaches([name]);
  } catch {
    uncached.clear();
  }
  setImmediate(saveNext).unref();
}
