import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { chmod, copyFile, mkdir, rename, rm, stat, symlink, unlink, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { PathWatcher } from "../../../core/loader/watch.ts";
import { folderWith, type Started, start, stopLoaders, testHost, toolFile, until, write } from "./_support.ts";

afterEach(stopLoaders);

const soak = process.env["MORTISE_SOAK"] !== undefined;
const SAVES = soak ? 20 : 4;
const version = (n: number) => toolFile("ver", n);

/** Calls the tool every few milliseconds until stopped; every call must succeed and never go back. */
function caller({ call }: Started, everyMs = 5) {
  const seen: number[] = [];
  const failures: unknown[] = [];
  const controller = new AbortController();
  const running = (async () => {
    while (!controller.signal.aborted) {
      await call("ver").then(
        (answer) => seen.push(answer as number),
        (error: unknown) => failures.push(error),
      );
      await sleep(everyMs);
    }
  })();
  return {
    stop: async () => {
      controller.abort();
      await running;
      expect(failures).toEqual([]);
      expect(seen.length).toBeGreaterThan(0);
      return seen;
    },
  };
}

/** Saves versions one after another, each answered before the next; then a storm. `ver` answers all the time. */
async function series(
  started: Started,
  save: (n: number) => Promise<void>,
  { limitMs = 1000, mayReport = () => false }: { limitMs?: number; mayReport?: () => boolean } = {},
): Promise<number[]> {
  const calls = caller(started);
  const times: number[] = [];
  for (let n = 1; n <= SAVES; n++) {
    await save(n);
    times.push(await started.answers("ver", n, limitMs));
    await sleep(70);
  }
  for (let n = 101; n <= 100 + SAVES; n++) {
    await save(n);
    await sleep(10);
  }
  await started.answers("ver", 100 + SAVES, limitMs);
  await calls.stop();
  if (!mayReport()) expect(started.host.reports).toEqual([]);
  return times;
}

describe("case 22: every way of saving", () => {
  const begin = async (files: Record<string, string> = { "x.ts": version(0) }) => {
    const folder = await folderWith();
    await write(join(folder, "extensions"), files);
    const started = await start(join(folder, "extensions"), { watch: true });
    expect(await started.call("ver")).toBe(0);
    return { folder, file: join(folder, "extensions/x.ts"), started };
  };

  test("a: overwrite in place", async () => {
    const { file, started } = await begin();
    await series(started, (n) => writeFile(file, version(n)));
  });

  test("b: temporary file and rename", async () => {
    const { file, started } = await begin();
    await series(started, async (n) => {
      await writeFile(`${file}.tmp`, version(n));
      await rename(`${file}.tmp`, file);
    });
  });

  test("c: backup, new file, backup deleted", async () => {
    const { file, started } = await begin();
    await series(started, async (n) => {
      await rename(file, `${file}~`);
      await writeFile(file, version(n));
      await unlink(`${file}~`);
    });
  });

  test("d: vim, with probe file and swap file", async () => {
    const { folder, file, started } = await begin();
    const dir = join(folder, "extensions");
    await series(started, async (n) => {
      await writeFile(join(dir, ".x.ts.swp"), "swap");
      await writeFile(join(dir, "4913"), "");
      await unlink(join(dir, "4913"));
      await rename(file, `${file}~`);
      await writeFile(file, version(n));
      await unlink(`${file}~`);
      await unlink(join(dir, ".x.ts.swp"));
    });
  });

  test("e: truncated, a pause, two halves", async () => {
    const { file, started } = await begin();
    let pause = 0;
    const save = async (n: number) => {
      const text = version(n);
      const half = Math.floor(text.length / 2);
      await writeFile(file, "");
      const emptied = performance.now();
      await sleep(80);
      await writeFile(file, text.slice(0, half));
      const halved = performance.now();
      await sleep(20);
      await writeFile(file, text.slice(half), { flag: "a" });
      pause = Math.max(pause, halved - emptied, performance.now() - halved);
    };
    // A writer that pauses for longer than a save takes has saved a broken file, which is told.
    await series(started, save, { limitMs: 1000, mayReport: () => pause >= 140 });
  });

  test("f: a linked file whose target is replaced by rename", async () => {
    const folder = await folderWith({ "src/x.ts": version(0) });
    await mkdir(join(folder, "extensions"));
    await symlink("../src/x.ts", join(folder, "extensions/x.ts"));
    const started = await start(join(folder, "extensions"), { watch: true });
    await series(started, async (n) => {
      await writeFile(join(folder, "src/x.new"), version(n));
      await rename(join(folder, "src/x.new"), join(folder, "src/x.ts"));
    });
  });

  test("g: the link itself is pointed elsewhere", async () => {
    const folder = await folderWith({ "src/x0.ts": version(0) });
    const link = join(folder, "extensions/x.ts");
    await mkdir(join(folder, "extensions"));
    await symlink("../src/x0.ts", link);
    const started = await start(join(folder, "extensions"), { watch: true });
    await series(started, async (n) => {
      await writeFile(join(folder, `src/x${n}.ts`), version(n));
      await rm(`${link}.tmp`, { force: true });
      await symlink(`../src/x${n}.ts`, `${link}.tmp`);
      await rename(`${link}.tmp`, link);
    });
    expect(started.loader.units()).toHaveLength(1);
  });

  test("h: the whole folder is swapped by rename", async () => {
    const files = (n: number) => ({ "index.ts": `export { default } from "./lib/v"`, "lib/v.ts": version(n) });
    const folder = await folderWith();
    await write(join(folder, "extensions/pkg"), files(0));
    const started = await start(join(folder, "extensions"), { watch: true });
    await series(started, async (n) => {
      await write(join(folder, `build${n}`), files(n));
      await rename(join(folder, "extensions/pkg"), join(folder, `old${n}`));
      await rename(join(folder, `build${n}`), join(folder, "extensions/pkg"));
    });
  });

  test("i: a linked folder with a manifest", async () => {
    const folder = await folderWith({ "src/pkg/package.json": `{"mortise":"./main.ts"}`, "src/pkg/main.ts": version(0) });
    await mkdir(join(folder, "extensions"));
    await symlink(join(folder, "src/pkg"), join(folder, "extensions/pkg"));
    const started = await start(join(folder, "extensions"), { watch: true });
    await series(started, (n) => writeFile(join(folder, "src/pkg/main.ts"), version(n)));
  });

  test("j: same size and same time, other content", async () => {
    const { folder, file, started } = await begin({ "x.ts": version(0) });
    const reference = join(folder, "reference");
    await copyFile(file, reference);
    const { atime, mtime } = await stat(file);
    const calls = caller(started);
    for (let n = 1; n <= Math.min(SAVES, 9); n++) {
      await writeFile(`${file}.tmp`, version(n));
      await utimes(`${file}.tmp`, atime, mtime);
      await rename(`${file}.tmp`, file);
      await started.answers("ver", n, 1000);
      await writeFile(file, version(n));
      await utimes(file, atime, mtime);
      await sleep(70);
    }
    await calls.stop();
    expect(started.host.reports).toEqual([]);
  });

  test.skipIf(process.getuid?.() === 0)("k: unreadable, then readable", async () => {
    const { file, started } = await begin();
    const calls = caller(started);
    for (let n = 1; n <= SAVES; n++) {
      await chmod(file, 0o000);
      await sleep(30);
      await chmod(file, 0o600);
      await writeFile(file, version(n));
      await started.answers("ver", n, 1000);
    }
    await calls.stop();
  });

  test("k, for a reader that may read everything: a directory in the file's place, then the file", async () => {
    const { file, started } = await begin();
    const calls = caller(started);
    for (let n = 1; n <= SAVES; n++) {
      await rm(file);
      await mkdir(file);
      await sleep(30);
      await rm(file, { recursive: true });
      await writeFile(file, version(n));
      await started.answers("ver", n, 1000);
      await sleep(70);
    }
    await calls.stop();
  });

  test("no reload for editors' leftovers; a storm is a few reloads; no handle grows over many rename saves", async () => {
    const { folder, file, started } = await begin();
    const generation = () => started.loader.units()[0]?.generation ?? 0;
    for (const name of [".x.ts.swp", "x.ts~", "4913", "x.ts.tmp", "y.ts.swp"]) {
      await writeFile(join(folder, "extensions", name), "x");
      await unlink(join(folder, "extensions", name));
    }
    await sleep(150);
    expect(generation()).toBe(1);
    const handles = started.loader.watchedDirectories;
    for (let n = 1; n <= (soak ? 200 : 40); n++) {
      await writeFile(`${file}.tmp`, version(n));
      await rename(`${file}.tmp`, file);
      await sleep(5);
    }
    await started.answers("ver", soak ? 200 : 40, 2000);
    expect(generation()).toBeLessThan(soak ? 40 : 15);
    expect(started.loader.watchedDirectories).toBe(handles);
  });

  test("a touch that changes nothing reloads nothing", async () => {
    const { file, started } = await begin();
    await writeFile(file, version(0));
    await utimes(file, new Date(), new Date());
    await sleep(200);
    expect(started.loader.units()[0]?.generation).toBe(1);
  });
});

describe("what is watched", () => {
  test("reload test 3 and 4: a new file appears, a deleted one goes after its grace, the shadowed one is back", async () => {
    const folder = await folderWith({ "a.ts": toolFile("t", "a") });
    const started = await start(folder, { watch: true });
    await writeFile(join(folder, "0first.ts"), toolFile("t", "0"));
    await started.answers("t", "0", 1000);
    const before = performance.now();
    await unlink(join(folder, "0first.ts"));
    await started.answers("t", "a", 2000);
    expect(performance.now() - before).toBeGreaterThan(450);
    await mkdir(join(folder, "later"));
    await sleep(50);
    await writeFile(join(folder, "later/index.ts"), toolFile("u", "u"));
    await started.answers("u", "u", 1000);
    await rm(join(folder, "later"), { recursive: true });
    await started.until(() => started.host.registry.get("tool", "u") === undefined, 2000);
    expect(started.host.reports).toEqual([]);
  });

  test("reload test 5: a renamed entry is never missing", async () => {
    const folder = await folderWith({ "x.ts": version(0) });
    const started = await start(folder, { watch: true });
    const calls = caller(started);
    await rename(join(folder, "x.ts"), join(folder, "y.ts"));
    await started.until(() => started.loader.units().every((unit) => unit.path.endsWith("y.ts")), 2000);
    await calls.stop();
  });

  test("reload test 6 and 9: a syntax error keeps the old version; the fix may be in a file the old one never imported", async () => {
    const folder = await folderWith({ "x.ts": version(0) });
    const started = await start(folder, { watch: true });
    await write(folder, { "_new.ts": "export const n = (" });
    await writeFile(join(folder, "x.ts"), `import { n } from "./_new"; ${version(1).replace("=> 1 ", "=> n ")}`);
    const report = await started.host.reported((one) => one.event === "load");
    expect(String(report.error)).toMatch(/_new\.ts:1:\d+/);
    expect(await started.call("ver")).toBe(0);
    await write(folder, { "_new.ts": "export const n = 7" });
    await started.answers("ver", 7, 1000);
    await write(folder, { "x.ts": `import { n } from "./_later.js"; ${version(1).replace("=> 1 ", "=> n ")}` });
    await started.host.reported((one) => String(one.error).includes("_later"));
    await write(folder, { "_later.ts": "export const n = 8" });
    await started.answers("ver", 8, 1000);
    expect(started.host.reports).toHaveLength(2);
  });

  test("a broken save that is mended at once is never reported", async () => {
    const folder = await folderWith({ "x.ts": version(0) });
    const started = await start(folder, { watch: true });
    await writeFile(join(folder, "x.ts"), "export default (");
    await sleep(80);
    await writeFile(join(folder, "x.ts"), version(1));
    await started.answers("ver", 1, 1000);
    expect(started.host.reports).toEqual([]);
  });

  test("a root that is not there yet, and a folder of contributions that grows and shrinks", async () => {
    const folder = await folderWith();
    const root = join(folder, "home/extensions");
    const started = await start(root, { watch: true });
    await write(join(root, "many"), { "one.ts": toolFile("one", 1) });
    await started.answers("one", 1, 2000);
    await write(join(root, "many"), { "two.ts": toolFile("two", 2) });
    await started.answers("two", 2, 1000);
    await unlink(join(root, "many/one.ts"));
    await started.until(() => started.host.registry.get("tool", "one") === undefined, 2000);
    expect(await started.call("two")).toBe(2);
  });

  test("a folder that is removed and made anew at once, over and over", async () => {
    const folder = await folderWith({ "unit/index.ts": version(0) });
    const started = await start(folder, { watch: true });
    await started.loader.watching;
    const unit = join(folder, "unit");
    for (const n of [1, 3, 5]) {
      rmSync(unit, { recursive: true });
      mkdirSync(unit);
      writeFileSync(join(unit, "index.ts"), version(n));
      await started.answers("ver", n, 5000);
      await sleep(200);
      // The inode number may be the old one's: the watch has to be a new one all the same.
      await writeFile(join(unit, "index.ts"), version(n + 1));
      await started.answers("ver", n + 1, 5000);
      await sleep(100);
    }
  });

  test("a folder between the unit and its helper that is replaced as a whole", async () => {
    const folder = await folderWith({
      "unit/index.ts": `import { n } from "./a/b/c/d/n.ts"; ${version(0).replace("=> 0 ", "=> n ")}`,
      "unit/a/b/c/d/n.ts": "export const n = 0",
    });
    const started = await start(folder, { watch: true });
    await started.loader.watching;
    const b = join(folder, "unit/a/b");
    for (const n of [1, 2]) {
      // Until the looks that follow the setting of watches are over.
      await sleep(150);
      await write(`${b}.next`, { "c/d/n.ts": `export const n = ${n}` });
      await rename(b, `${b}.old${n}`);
      await rename(`${b}.next`, b);
      await started.answers("ver", n, 5000);
    }
  });

  test("two watchers of one folder both follow when it is replaced, also while one is being set up", async () => {
    const folder = await folderWith({ "d/a": "0", "d/b": "0" });
    const log = testHost().log;
    const follow = () => {
      const paths = new Set<string>();
      return { paths, watcher: new PathWatcher({ log, onEvent: (path) => void paths.add(path) }) };
    };
    const [first, second] = [follow(), follow()];
    const anew = () => {
      rmSync(join(folder, "d"), { recursive: true });
      mkdirSync(join(folder, "d"));
    };
    try {
      await first.watcher.watch([join(folder, "d/a")]);
      const setUp = second.watcher.watch([join(folder, "d/b")]);
      anew();
      await setUp;
      for (let round = 0; round < 3; round++) {
        await sleep(150);
        for (const { paths } of [first, second]) paths.clear();
        for (const name of ["a", "b"]) await writeFile(join(folder, "d", name), String(round));
        await until(() => ["a", "b"].every((name) => [first, second].every(({ paths }) => paths.has(join(folder, "d", name)))));
        anew();
      }
    } finally {
      await Promise.all([first.watcher.stop(), second.watcher.stop()]);
    }
  });

  test("a helper outside the folder, a JSON file and package.json", async () => {
    const folder = await folderWith({
      "shared/n.json": "1",
      "extensions/p/package.json": `{"mortise":"a.ts"}`,
      "extensions/p/a.ts": `import n from "../../shared/n.json"; ${version(0).replace("=> 0 ", "=> n ")}`,
      "extensions/p/b.ts": version(99),
    });
    const started = await start(join(folder, "extensions"), { watch: true });
    await writeFile(join(folder, "shared/n.json"), "2");
    await started.answers("ver", 2, 1000);
    await writeFile(join(folder, "extensions/p/package.json"), `{"mortise":"b.ts"}`);
    await started.answers("ver", 99, 1000);
  });

  test("reload test 19: edits within one burst are one or two reloads with the last content", async () => {
    const folder = await folderWith({ "x.ts": version(0) });
    const started = await start(folder, { watch: true });
    for (const n of [1, 2, 3]) await writeFile(join(folder, "x.ts"), version(n));
    await started.answers("ver", 3, 1000);
    await sleep(150);
    expect(await started.call("ver")).toBe(3);
    expect(started.loader.units()[0]?.generation).toBeLessThanOrEqual(5);
  });

  test("a disabled unit is not reloaded; a quarantined one is brought back by an edit", async () => {
    const folder = await folderWith({ "x.ts": version(0) });
    const started = await start(folder, { watch: true });
    const id = join(folder, "x.ts");
    await started.loader.setEnabled(id, false);
    await writeFile(id, version(1));
    await sleep(120);
    expect(started.host.registry.get("tool", "ver")).toBeUndefined();
    await started.loader.setEnabled(id, true);
    expect(await started.call("ver")).toBe(1);
    started.loader.quarantine(id, "a test");
    await writeFile(id, version(2));
    await started.answers("ver", 2, 1000);
  });
});
