// Finds skills: folders with a SKILL.md.
import { type Dirent, existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { errorMessage, listFolder, parseFrontmatter, type Skill } from "mortise/extension";

export interface SkillFolder extends Pick<Skill, "origin"> {
  readonly path: string;
}

export interface Found {
  /** Sorted by name. */
  readonly skills: readonly Skill[];
  /** Folders whose changes matter: the ones given, and each skill's. */
  readonly watch: readonly string[];
}

const SKILL_FILE = "SKILL.md";

/** What a prompt's name may look like: it is typed after `/skill:` and stands in `skill://`. */
const NAME = /^[\p{L}\p{N}][\p{L}\p{N}._-]*$/u;

/** The first folder wins a name. What cannot be used is told through `warn`. */
export async function scanSkills(folders: readonly SkillFolder[], warn: (message: string) => void): Promise<Found> {
  const skills = new Map<string, Skill>();
  const watch: string[] = [];
  for (const { path, origin } of folders) {
    watch.push(path);
    for (const directory of await foldersAt(path, warn)) {
      watch.push(directory);
      const skill = await readSkill(directory, origin, warn);
      if (skill !== undefined && !skills.has(skill.name)) skills.set(skill.name, skill);
    }
  }
  return { skills: [...skills.values()].sort((a, b) => (a.name < b.name ? -1 : 1)), watch };
}

async function readSkill(
  directory: string,
  origin: Skill["origin"],
  warn: (message: string) => void,
): Promise<Skill | undefined> {
  const file = join(directory, SKILL_FILE);
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    if (!isMissing(error)) warn(`Skill "${file}" is ignored: ${errorMessage(error)}`);
    return undefined;
  }
  const { data, warning } = await parseFrontmatter(text);
  if (warning !== undefined) warn(`Head of skill "${file}" is read line by line: ${warning}`);
  const name = oneLine(data["name"]) ?? directory.slice(directory.lastIndexOf("/") + 1);
  if (!NAME.test(name)) {
    warn(`Skill "${file}" is ignored: its name "${name}" must be letters, digits, ".", "_" and "-"`);
    return undefined;
  }
  const description = oneLine(data["description"]);
  if (description === undefined) {
    warn(`Skill "${file}" is ignored: it needs a "description" in its head, so that it is known when to use it`);
    return undefined;
  }
  const hidden = data["hide"] === true || data["disable-model-invocation"] === true;
  return { name, description, file, directory, origin, hidden };
}

/** The folders of skills a path stands for: itself when it is one, or names its SKILL.md; else those in it. */
async function foldersAt(path: string, warn: (message: string) => void): Promise<string[]> {
  if (basename(path) === SKILL_FILE) return [dirname(path)];
  if (existsSync(join(path, SKILL_FILE))) return [path];
  return listFolder(path, mayBeFolder, warn);
}

function mayBeFolder(entry: Dirent): boolean {
  return entry.isDirectory() || entry.isSymbolicLink();
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR");
}

/** Head values as one line. */
function oneLine(value: unknown): string | undefined {
  if (typeof value !== "string" && typeof value !== "number") return undefined;
  const text = String(value).replace(/\s+/g, " ").trim();
  return text === "" ? undefined : text;
}
