// `skill://name` is a skill's instructions, `skill://name/rel/path` a file of its folder.
import { readdir, readFile, realpath, stat } from "node:fs/promises";
import { isAbsolute, join, relative, sep } from "node:path";
import {
  type Context,
  defineUriScheme,
  errorMessage,
  type Skill,
  Skills,
  ToolError,
  type UriReadResult,
} from "mortise/extension";

export default defineUriScheme({
  name: "skill",
  description: "Instructions of a skill (skill://name) and files of its folder (skill://name/path)",
  async read(url, ctx) {
    const { skill, path } = locate(url, ctx);
    const file = await inside(skill, path, url);
    if ((await stat(file)).isDirectory()) return listing(file, url);
    const bytes = await readFile(file);
    if (bytes.includes(0)) throw new ToolError(`Cannot read "${url}": it is no text. Its file is ${file}`);
    return { content: bytes.toString("utf8"), contentType: contentTypeOf(file), immutable: false };
  },
});

/** @throws {ToolError} when the URL names no skill. */
function locate(url: string, ctx: Context): { skill: Skill; path: string } {
  const parts = /^skill:\/\/([^/?#]*)(?:\/([^?#]*))?/i.exec(url);
  const name = decoded(parts?.[1] ?? "", url);
  const skill = ctx.use(Skills).find(name);
  if (skill === undefined) {
    const known = ctx.use(Skills).list();
    const names = known.length === 0 ? "there are none" : known.map((each) => each.name).join(", ");
    throw new ToolError(`Cannot read "${url}": no skill is called "${name}". Skills: ${names}`);
  }
  return { skill, path: decoded(parts?.[2] ?? "", url) };
}

function decoded(text: string, url: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new ToolError(`Cannot read "${url}": a "%" in it must be followed by two hexadecimal digits`);
  }
}

/** The real file, which links may not lead out of the skill's folder. */
async function inside(skill: Skill, path: string, url: string): Promise<string> {
  if (path === "") return skill.file;
  if (path.includes("\0")) throw new ToolError(`Cannot read "${url}": it contains a NUL character`);
  const outside = new ToolError(`Cannot read "${url}": it leads out of the folder of skill "${skill.name}"`);
  const root = await realpath(skill.directory);
  if (leaves(root, join(root, path))) throw outside;
  let file: string;
  try {
    file = await realpath(join(root, path));
  } catch (error) {
    throw new ToolError(`Cannot read "${url}": ${errorMessage(error)}`, { cause: error });
  }
  if (leaves(root, file)) throw outside;
  return file;
}

function leaves(root: string, path: string): boolean {
  const way = relative(root, path);
  return way === ".." || way.startsWith(`..${sep}`) || isAbsolute(way);
}

async function listing(directory: string, url: string): Promise<UriReadResult> {
  const entries = await readdir(directory, { withFileTypes: true });
  const names = entries.map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name)).sort();
  return { content: names.join("\n"), contentType: "text/plain", notes: [`Files of ${url}`], immutable: false };
}

function contentTypeOf(file: string): string {
  return /\.(?:md|markdown)$/i.test(file) ? "text/markdown" : "text/plain";
}
