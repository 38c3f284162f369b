// Which instruction files of the user and the project the model is told, and in which order.
import { existsSync } from "node:fs";
import { dirname, join, sep } from "node:path";
import { type Context, Launch, Trust } from "mortise/extension";
import { PromptFiles } from "./_files.ts";
import { expandImports } from "./_imports.ts";
import { ContextFileNames } from "./_settings.ts";

export interface ContextFile {
  readonly path: string;
  readonly text: string;
}

/** The user's file, then the project's from the repository's root down to the working directory. The same text stands once. */
export async function contextFiles(ctx: Context): Promise<ContextFile[]> {
  const { home } = ctx.use(Launch);
  const { cwd } = ctx.conversation;
  const files = ctx.use(PromptFiles);
  const found: ContextFile[] = [];
  const user = await files.read(join(home, "AGENTS.md"));
  if (user !== undefined) {
    const text = await expandImports(user, { files, allowed: () => true });
    found.push({ path: join(home, "AGENTS.md"), text });
  }
  const folders = foldersUpToRoot(cwd);
  const root = folders[0] ?? cwd;
  const trusted = ctx.tryUse(Trust)?.isTrusted(cwd) === true;
  const allowed = (realPath: string) => trusted || realPath === root || realPath.startsWith(root + sep);
  for (const folder of folders) {
    for (const name of ctx.setting(ContextFileNames)) {
      const path = join(folder, name);
      const file = await files.read(path);
      // A link of a cloned repository may lead anywhere.
      if (file === undefined || !allowed(file.realPath)) continue;
      found.push({ path, text: await expandImports(file, { files, allowed }) });
      break;
    }
  }
  return found.filter(({ text }, index) => !found.slice(index + 1).some((later) => later.text === text));
}

/** From the repository's root, which holds `.git`, down to `cwd`; only `cwd` outside of repositories. */
function foldersUpToRoot(cwd: string): string[] {
  const folders: string[] = [];
  for (let folder = cwd; ; folder = dirname(folder)) {
    folders.unshift(folder);
    if (existsSync(join(folder, ".git"))) return folders;
    if (folder === dirname(folder)) return [cwd];
  }
}
