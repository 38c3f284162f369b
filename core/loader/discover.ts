// Folders → units. Reads names and manifests, never code. A unit is known by its real path, so that one reached by two ways is
// loaded once.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";
import { errorMessage } from "../kernel/errors.ts";
import { isDirectory, isFile, linkTarget, realPath } from "./files.ts";
import type { Root } from "./host.ts";

/** A unit as it lies on disk. */
export interface UnitSource {
  /** Real path of the file or folder. */
  readonly id: string;
  /** The path it was found under; differs from `id` behind a symbolic link. */
  readonly path: string;
  /** Folder whose `node_modules` are the unit's own. */
  readonly folder: string;
  readonly kind: "file" | "folder";
  /** Modules whose default exports are the unit, by real path. */
  readonly entries: readonly string[];
  /** Files that decided the entries, watched as well. */
  readonly decidedBy: readonly string[];
  /** Key of package.json that named the entries. */
  readonly manifestKey?: string | undefined;
  /** `mortise.permissions` of package.json: the only kinds the unit may contribute. */
  readonly permissions?: readonly string[] | undefined;
  /** Why it cannot be loaded as it lies there. */
  readonly problem?: string | undefined;
}

const MODULE = /\.([cm]?ts|tsx|[cm]?js|jsx)$/;
const INDEX = ["index.ts", "index.tsx", "index.mts", "index.cts", "index.js", "index.mjs", "index.cjs"];
/** In order: our own key first, then descendants before their ancestors. */
const MANIFEST_KEYS = ["mortise", "veyyon", "omp", "pi"] as const;

const Names = z.union([z.string().transform((name) => [name]), z.array(z.string())]);
const Entries = z.union([Names, z.object({ extensions: Names }).transform((whole) => whole.extensions)]);
const Permissions = z.object({ permissions: z.array(z.string().min(1)) });
const Manifest = z.object({ mortise: z.unknown(), veyyon: z.unknown(), omp: z.unknown(), pi: z.unknown() }).partial();

/** True for names that are never a unit, a contribution or a reason to look: editors' leftovers, helpers, tests, types. */
export function isIgnoredName(name: string): boolean {
  return (
    /^[._]/.test(name) ||
    name === "node_modules" ||
    name === "4913" ||
    /(~|\.swp|\.swx|\.tmp|\.bak|\.orig)$/.test(name) ||
    /\.(test|spec)\.[^.]+$/.test(name) ||
    /\.d\.[cm]?ts$/.test(name)
  );
}

/** The units of a root, in discovery order: sorted by real path. A folder that is not there has none. */
export function discover(root: Root): UnitSource[] {
  if (root.kind === "unit") {
    const source = describe(root.path);
    return source === undefined ? [] : [source];
  }
  const found = new Map<string, UnitSource>();
  for (const path of childrenOf(root)) {
    if (!isDirectory(path) && !MODULE.test(path)) continue;
    const source = describe(path);
    if (source !== undefined && !found.has(source.id)) found.set(source.id, source);
  }
  return [...found.values()].sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0));
}

/** The unit at a path, or undefined when there is none. */
export function describe(path: string): UnitSource | undefined {
  const id = realPath(path);
  if (id === undefined) return undefined;
  if (!isDirectory(id)) {
    if (!isFile(id)) return undefined;
    return { id, path, folder: dirname(id), kind: "file", entries: [id], decidedBy: [] };
  }
  return describeFolder(id, path);
}

function describeFolder(id: string, path: string): UnitSource | undefined {
  const base = { id, path, folder: id, kind: "folder" as const };
  const manifest = join(id, "package.json");
  if (isFile(manifest)) {
    const decidedBy = [manifest];
    try {
      const { key, names, permissions } = readManifest(manifest);
      const entries = names?.flatMap((name) => entriesAt(id, name)) ?? entriesOfFolder(id);
      if (names === undefined && entries.length === 0) return undefined;
      return { ...base, decidedBy, manifestKey: key, entries, permissions };
    } catch (error) {
      return { ...base, decidedBy, entries: [], problem: `${manifest}: ${errorMessage(error)}` };
    }
  }
  const entries = entriesOfFolder(id);
  return entries.length === 0 ? undefined : { ...base, decidedBy: [], entries };
}

/** An index file, else every module that is not a helper. */
function entriesOfFolder(folder: string): string[] {
  for (const name of INDEX) {
    const path = join(folder, name);
    if (isFile(path)) return [realPath(path) ?? path];
  }
  return namesIn(folder)
    .filter((name) => MODULE.test(name) && !isIgnoredName(name))
    .map((name) => join(folder, name))
    .filter(isFile)
    .sort()
    .map((path) => realPath(path) ?? path);
}

interface ManifestContent {
  key?: string | undefined;
  /** Undefined when it names no entries. */
  names?: string[] | undefined;
  permissions?: string[] | undefined;
}

/** @throws {Error} when the manifest is not what it should be. */
function readManifest(path: string): ManifestContent {
  const parsed: unknown = JSON.parse(readFileSync(path, "utf8"));
  const manifest = Manifest.parse(parsed);
  const permissions = permissionsOf(manifest.mortise);
  for (const key of MANIFEST_KEYS) {
    if (manifest[key] === undefined) continue;
    const names = Entries.safeParse(manifest[key]);
    if (names.success) return { key, names: names.data, permissions };
    // Other hosts keep other things under their key (skills, themes): then the folder is read by its files.
    if (key !== "mortise" || permissions !== undefined) continue;
    throw new Error(`"${key}" must be a path, a list of paths, {"extensions": [paths]} or {"permissions": [kinds]}`);
  }
  return { permissions };
}

/** @throws {Error} when they are there and no list of kinds: a limit that is misspelt must not be none. */
function permissionsOf(own: unknown): string[] | undefined {
  if (typeof own !== "object" || own === null || !("permissions" in own)) return undefined;
  const stated = Permissions.safeParse(own);
  if (stated.success) return stated.data.permissions;
  throw new Error('"mortise.permissions" must be a list of kinds, e.g. ["tool", "hook"]');
}

/** What a manifest's name stands for; a name that leads nowhere stays, so that the load fails and says so. */
function entriesAt(folder: string, name: string): string[] {
  const path = join(folder, name);
  if (isDirectory(path)) {
    const entries = entriesOfFolder(path);
    return entries.length > 0 ? entries : [path];
  }
  for (const candidate of [path, `${path}.ts`, `${path}.js`, `${path}.mjs`]) {
    if (isFile(candidate)) return [realPath(candidate) ?? candidate];
  }
  return [path];
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** Folders directly in a root that are, or may become, units. */
export function candidateFolders(root: Root): string[] {
  if (root.kind === "unit") return [];
  return childrenOf(root).filter(isDirectory);
}

/** Where links lead that may become units and lead nowhere now. */
export function awaitedTargets(root: Root): string[] {
  const paths = root.kind === "unit" ? [root.path] : childrenOf(root);
  return paths.flatMap((path) => (realPath(path) === undefined ? (linkTarget(path) ?? []) : []));
}

/** What lies in a root and may be a unit. What is excluded is not looked into: the checkout's own folder holds all built-ins. */
function childrenOf(root: Root): string[] {
  const names = namesIn(root.path).filter((name) => !isIgnoredName(name));
  if (root.exclude === undefined) return names.map((name) => join(root.path, name));
  const excluded = new Set(root.exclude);
  const folder = realPath(root.path) ?? root.path;
  return names
    .filter((name) => !excluded.has(join(folder, name)))
    .map((name) => join(root.path, name))
    .filter((path) => !excluded.has(realPath(path) ?? path));
}
