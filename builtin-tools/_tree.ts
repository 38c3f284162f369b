// A directory as a tree of two levels.
import { type Dirent, promises as fs } from "node:fs";
import { join } from "node:path";
import { toolError } from "./_open.ts";

const DEPTH = 2;
/** Entries shown per directory below the first level, and on it. */
const PER_DIRECTORY = 12;
const TOP_LEVEL = 200;
/** Counted, not opened: their content is never what somebody looks for. */
const closed = new Set([".git", "node_modules", ".venv", "__pycache__"]);

export async function directoryTree(path: string, shown: string): Promise<string> {
  let entries: Dirent[];
  try {
    entries = await fs.readdir(path, { withFileTypes: true });
  } catch (error) {
    throw toolError(`Cannot list ${shown}`, error);
  }
  if (entries.length === 0) return `${shown}/\n(empty)`;
  const lines = [`${shown}/`];
  await list(path, entries, 1, lines);
  return lines.join("\n");
}

async function list(path: string, entries: Dirent[], depth: number, lines: string[]): Promise<void> {
  const indent = "  ".repeat(depth);
  const limit = depth === 1 ? TOP_LEVEL : PER_DIRECTORY;
  const sorted = [...entries].sort(byKindAndName);
  for (const entry of sorted.slice(0, limit)) {
    if (!entry.isDirectory()) {
      lines.push(`${indent}${entry.name}${entry.isSymbolicLink() ? "@" : ""}`);
      continue;
    }
    const children = await readDirectory(join(path, entry.name));
    if (children === undefined) lines.push(`${indent}${entry.name}/ (not readable)`);
    else if (depth >= DEPTH || closed.has(entry.name)) lines.push(`${indent}${entry.name}/ (${count(children.length)})`);
    else {
      lines.push(`${indent}${entry.name}/`);
      await list(join(path, entry.name), children, depth + 1, lines);
    }
  }
  if (sorted.length > limit) lines.push(`${indent}… ${sorted.length - limit} more; use ls or find`);
}

async function readDirectory(path: string): Promise<Dirent[] | undefined> {
  try {
    return await fs.readdir(path, { withFileTypes: true });
  } catch {
    return undefined;
  }
}

function byKindAndName(a: Dirent, b: Dirent): number {
  return Number(b.isDirectory()) - Number(a.isDirectory()) || (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
}

const count = (entries: number) => (entries === 1 ? "1 entry" : `${entries} entries`);
