// Approvals that hold for a project, kept outside of it: `$MORTISE_HOME/approvals.json`, by the real path of its directory.
import { randomBytes } from "node:crypto";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { z } from "mortise/extension";
import { Approved } from "./_rules.ts";

const Store = z.object({ version: z.literal(1), projects: z.record(z.string(), z.array(Approved)) });

/** Empty when there is none. @throws {Error} when the file cannot be read or is no store */
export async function approvedIn(file: string, project: string): Promise<readonly Approved[]> {
  return (await read(file)).projects[project] ?? [];
}

export async function remember(file: string, project: string, added: readonly Approved[]): Promise<void> {
  const store = await read(file);
  const known = store.projects[project] ?? [];
  const fresh = added.filter((each) => !known.some((other) => JSON.stringify(other) === JSON.stringify(each)));
  store.projects[project] = [...known, ...fresh];
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const temporary = `${file}.${randomBytes(6).toString("hex")}.tmp`;
  try {
    await writeFile(temporary, `${JSON.stringify(store, null, 2)}\n`, { mode: 0o600, flag: "wx" });
    await rename(temporary, file);
  } finally {
    await rm(temporary, { force: true });
  }
}

async function read(file: string): Promise<z.infer<typeof Store>> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return { version: 1, projects: {} };
    throw error;
  }
  return Store.parse(JSON.parse(text));
}
