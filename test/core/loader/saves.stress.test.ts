// No save is lost, in whatever style and however busy the machine is: what lies on disk at the end is what answers
// (extensions.md §4.9, invariant 8). Each save is looked at by itself, so a lost one cannot hide behind the next.
import { cp, mkdir, rename, rm, stat, symlink, unlink, utimes, writeFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import fc from "fast-check";
import { afterEach, expect, test } from "vitest";
import { folderWith, start, stopLoaders, toolFile, write } from "./_support.ts";

afterEach(stopLoaders);

const soak = process.env["MORTISE_SOAK"] !== undefined;
const SAVES = soak ? 600 : 30;
/** Far above what a busy machine needs; a lost save is never seen. */
const LIMIT_MS = 20_000;

const entry = (n: number) =>
  toolFile("ver", n, 'import { n } from "./lib/a/b/n.ts";').replace(`=> ${n} as string`, `=> \`${n}:\${n}\``);
const helper = (n: number) => `export const n = ${n};\n`;

/** Uses the processors, so that timers are late and events come in heaps. */
function load(): () => Promise<unknown> {
  const spin = "setInterval(() => { const end = Date.now() + 40; while (Date.now() < end); }, 45);";
  const workers = Array.from({ length: availableParallelism() }, () => new Worker(spin, { eval: true }));
  return () => Promise.all(workers.map((worker) => worker.terminate()));
}

type Save = (path: string, text: string, unit: string) => Promise<void>;

/** A copy of the unit with the new text in place, beside it under a name that is no unit. */
async function copyWith(path: string, text: string, unit: string): Promise<string> {
  const copy = join(dirname(unit), ".next");
  await cp(unit, copy, { recursive: true });
  await anew(join(copy, path.slice(unit.length)), text);
  return copy;
}

/** Writes a file of a copy; through a link it would be the original's target. */
async function anew(path: string, text: string): Promise<void> {
  await unlink(path);
  await writeFile(path, text);
}

async function replaced(path: string, text: string, unit: string): Promise<void> {
  const copy = await copyWith(path, text, unit);
  await rm(unit, { recursive: true });
  await cp(copy, unit, { recursive: true });
  await rm(copy, { recursive: true });
}

const styles: Record<string, Save> = {
  "in place": (path, text) => writeFile(path, text),
  "in place twice": async (path, text) => {
    await writeFile(path, `${text}// once`);
    await writeFile(path, text);
  },
  "in halves": async (path, text) => {
    await writeFile(path, text.slice(0, text.length >> 1));
    await writeFile(path, text.slice(text.length >> 1), { flag: "a" });
  },
  "emptied, then written": async (path, text) => {
    await writeFile(path, "");
    await sleep(15);
    await writeFile(path, text);
  },
  "temporary file and rename": async (path, text) => {
    await writeFile(`${path}.tmp`, text);
    await rename(`${path}.tmp`, path);
  },
  "backup and new file": async (path, text) => {
    await rename(path, `${path}~`);
    await writeFile(path, text);
    await unlink(`${path}~`);
  },
  "removed and written": (path, text) => anew(path, text),
  "with the old times": async (path, text) => {
    const { atime, mtime } = await stat(path);
    await writeFile(path, text);
    await utimes(path, atime, mtime);
  },
  "pointed elsewhere by a link": async (path, text) => {
    const target = `${path}.${text.length}-${Math.random()}.target`;
    await writeFile(target, text);
    await symlink(target, `${path}.link`);
    await rename(`${path}.link`, path);
  },
  "its folder removed and made anew": async (path, text, unit) => {
    if (dirname(path) === unit) return replaced(path, text, unit);
    await rm(dirname(path), { recursive: true });
    await mkdir(dirname(path));
    await writeFile(path, text);
  },
  "the whole unit removed and made anew": (path, text, unit) => replaced(path, text, unit),
  "the whole unit replaced by rename": async (path, text, unit) => {
    const copy = await copyWith(path, text, unit);
    await rename(unit, join(dirname(unit), ".old"));
    await rename(copy, unit);
    await rm(join(dirname(unit), ".old"), { recursive: true });
  },
  "a folder in between replaced by rename": async (path, text, unit) => {
    const lib = join(unit, "lib");
    await cp(lib, `${lib}.next`, { recursive: true });
    if (path.startsWith(lib)) await anew(path.replace(lib, `${lib}.next`), text);
    await rename(lib, `${lib}.old`);
    await rename(`${lib}.next`, lib);
    await rm(`${lib}.old`, { recursive: true });
    if (!path.startsWith(lib)) await writeFile(path, text);
  },
};

/** Pauses that fall into the times a watch or a load needs. */
const pause = fc.constantFrom(0, 0, 1, 5, 20, 59, 61, 90, 160);
const save = fc.record({ style: fc.constantFrom(...Object.keys(styles)), what: fc.constantFrom("entry", "helper"), pause });

test("every save comes to answer, whatever it looks like, on a busy machine", { timeout: 900_000 }, async () => {
  const seed = Number(process.env["MORTISE_SEED"] ?? Date.now() & 0x7fffffff);
  const saves = fc.sample(save, { seed, numRuns: SAVES });
  const folder = await folderWith();
  const root = join(folder, "extensions");
  const unit = join(root, "unit");
  const files = { entry: join(unit, "index.ts"), helper: join(unit, "lib/a/b/n.ts") };
  const state = { entry: 0, helper: 0 };
  await write(unit, { "index.ts": entry(0), "lib/a/b/n.ts": helper(0) });
  const started = await start(root, { watch: true });
  await started.loader.watching;
  const unload = load();
  const slow: number[] = [];
  try {
    for (const [index, { style, what, pause: before }] of saves.entries()) {
      const of = what === "entry" ? "entry" : "helper";
      state[of] = index + 1;
      await sleep(before);
      await styles[style]?.(files[of], (of === "entry" ? entry : helper)(index + 1), unit);
      const answered = started.answers("ver", `${state.entry}:${state.helper}`, LIMIT_MS);
      slow.push(
        await answered.catch((error: Error) =>
          Promise.reject(new Error(`seed ${seed}, save ${index + 1}, ${what} ${style}: ${error.message}`)),
        ),
      );
    }
  } finally {
    await unload();
  }
  slow.sort((a, b) => a - b);
  console.info(`${SAVES} saves: median ${slow[SAVES >> 1]?.toFixed(0)} ms, slowest ${slow.at(-1)?.toFixed(0)} ms (seed ${seed})`);
  expect(slow).toHaveLength(SAVES);
});
