// Where extensions are looked for (DESIGN §2 "Extension folders").
import { realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { BuiltinUnit, Root } from "./loader/host.ts";
import type { Options } from "./options.ts";

/** The folder with package.json: one up from `core/`, or from `dist/` and its chunks. */
export const PACKAGE_ROOT = packageRoot();

export interface RootsOptions {
  options: Options;
  home: string;
  builtins: readonly BuiltinUnit[];
  /** Also what lies in the package's own `extensions/` beside the built-ins. */
  packageExtensions: boolean;
  isTrusted: (dir: string) => boolean;
}

/** The roots known when the daemon starts, in the order in which units of one rank answer. */
export function extensionRoots({ options: cli, home, builtins, packageExtensions, isTrusted }: RootsOptions): Root[] {
  const roots: Root[] = [];
  for (const path of cli.extension) roots.push({ path, origin: "cli", kind: "unit" });
  if (cli.noExtensions) return roots;
  if (isTrusted(cli.cwd)) roots.push(projectRoot(cli.cwd));
  roots.push({ path: join(home, "extensions"), origin: "user", kind: "folder" });
  if (!packageExtensions) return roots;
  const own = join(PACKAGE_ROOT, "extensions");
  const exclude = builtins.flatMap((unit) => (unit.sources === undefined ? [] : [real(join(PACKAGE_ROOT, unit.sources))]));
  roots.push({ path: own, origin: "user", kind: "folder", exclude });
  return roots;
}

export function projectRoot(cwd: string): Root {
  return { path: join(cwd, ".mortise", "extensions"), origin: "project", kind: "folder" };
}

/** The roots that the setting `extensions` names; what is no path is left out, the settings have told of it. */
export function configuredRoots(setting: unknown, { options: cli, env }: { options: Options; env: NodeJS.ProcessEnv }): Root[] {
  if (cli.noExtensions || !Array.isArray(setting)) return [];
  const paths = setting.filter((path) => typeof path === "string");
  return paths.map((path) => ({ path: expand(path, cli.cwd, env), origin: "user", kind: "unit" }));
}

function expand(path: string, cwd: string, env: NodeJS.ProcessEnv): string {
  const home = path === "~" || path.startsWith("~/") ? (env["HOME"] ?? "~") + path.slice(1) : path;
  return join(home.startsWith("/") ? "" : cwd, home);
}

function real(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

function packageRoot(): string {
  const here = dirname(fileURLToPath(import.meta.url));
  return here.endsWith("chunks") ? dirname(dirname(here)) : dirname(here);
}
