// models.yml of the user and, in a trusted project, of the project. The project's entries win per provider.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { errorMessage } from "mortise/extension";
import { emptyModelsFile, type ModelsFile, readModelsFile } from "./_config.ts";

export class ModelsFiles {
  readonly user: string;
  readonly project: string;
  #user: ModelsFile = emptyModelsFile;
  #project: ModelsFile = emptyModelsFile;

  constructor(home: string, cwd: string) {
    this.user = join(home, "models.yml");
    this.project = join(cwd, ".mortise", "models.yml");
  }

  /** Reads both anew. Never rejects: what is wrong is listed in `problems`, and a file that cannot be read keeps its last content. */
  async load(): Promise<void> {
    this.#user = await load(this.user, this.#user);
    this.#project = this.project === this.user ? emptyModelsFile : await load(this.project, this.#project);
  }

  merged(isTrusted: boolean): ModelsFile {
    if (!isTrusted) return this.#user;
    return {
      providers: new Map([...this.#user.providers, ...this.#project.providers]),
      problems: [...this.#user.problems, ...this.#project.problems],
    };
  }
}

async function load(path: string, last: ModelsFile): Promise<ModelsFile> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return emptyModelsFile;
    return { providers: last.providers, problems: [`${path}: ${errorMessage(error)}`] };
  }
  try {
    const { parse } = await import("yaml");
    const file = readModelsFile(parse(text, { merge: true }));
    return { ...file, problems: file.problems.map((problem) => `${path}: ${problem}`) };
  } catch (error) {
    const line = errorMessage(error).split("\n")[0]?.replace(/:$/, "");
    const rest = last.providers.size > 0 ? "its last content is used" : "nothing of it is used";
    return { providers: last.providers, problems: [`${path}: ${line}; ${rest}`] };
  }
}
