// The files of a project that a yes covers, as they are on disk. Links are followed: what would run is what is hashed. Never
// throws: a project is not ours, anything may lie in it.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import { join, relative, sep } from "node:path";

/** Names under the project directory whose content the consent covers. */
const COVERED = ["extensions", "config.yml", "models.yml"];
const MAX_DEPTH = 8;
const MAX_FOLDERS = 100;

/** Hash of every covered file, and of those in `also`, by path relative to the project. */
export function codeOf(project: string, also: readonly string[] = []): Record<string, string> {
  const found: Record<string, string> = {};
  const visit = (path: string, depth: number) => {
    const kind = kindOf(path);
    if (kind === "folder" && depth < MAX_DEPTH) {
      for (const name of namesIn(path)) if (name !== "node_modules" && name !== ".git") visit(join(path, name), depth + 1);
    } else if (kind === "file") {
      found[relative(project, path)] = hashOf(path);
    }
  };
  for (const name of COVERED) visit(join(project, ".mortise", name), 0);
  for (const name of also)
    if (found[name] === undefined && !isCovered(project, join(project, name))) {
      const path = join(project, name);
      if (kindOf(path) === "file") found[name] = hashOf(path);
    }
  return found;
}

/** Paths whose change may bring in code. */
export function coveredPaths(project: string): string[] {
  return COVERED.map((name) => join(project, ".mortise", name));
}

/** The same, and the folders inside, for a watch that looks at single folders. */
export function watchedPaths(project: string): string[] {
  const folders: string[] = [];
  const visit = (path: string, depth: number) => {
    if (kindOf(path) !== "folder" || folders.length >= MAX_FOLDERS) return;
    folders.push(path);
    if (depth < 2)
      for (const name of namesIn(path)) if (name !== "node_modules" && name !== ".git") visit(join(path, name), depth + 1);
  };
  for (const path of coveredPaths(project)) visit(path, 0);
  return [...new Set([...coveredPaths(project), ...folders])];
}

export function isCovered(project: string, path: string): boolean {
  return coveredPaths(project).some((covered) => path === covered || path.startsWith(covered + sep));
}

/** Of the content; `absent` for what is no readable file. */
export function hashOf(path: string): string {
  try {
    return createHash("sha256").update(readFileSync(path)).digest("hex");
  } catch {
    return "absent";
  }
}

/** Stands for a set of files with their content. */
export function keyOf(reason: string, hashes: Record<string, string>): string {
  const parts = Object.entries(hashes).sort(([a], [b]) => (a < b ? -1 : 1));
  return createHash("sha256")
    .update(JSON.stringify([reason, parts]))
    .digest("hex");
}

/** The real path; the path itself when nothing is there. */
export function real(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

function kindOf(path: string): "file" | "folder" | undefined {
  try {
    const stat = statSync(path, { throwIfNoEntry: false });
    return stat?.isDirectory() ? "folder" : stat?.isFile() ? "file" : undefined;
  } catch {
    // A link that goes in circles, or a folder that may not be searched.
    return undefined;
  }
}

function namesIn(path: string): string[] {
  try {
    return readdirSync(path).sort();
  } catch {
    return [];
  }
}
