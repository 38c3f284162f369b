// Where units lie and what says so: links, manifests, folders. Whatever of it changes is followed, told of once, and mended by mending.
import { mkdirSync, writeFileSync } from "node:fs";
import { mkdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { folderWith, type Started, start, stopLoaders, toolFile, write } from "./_support.ts";

afterEach(stopLoaders);

async function follow(folder: string): Promise<Started> {
  const started = await start(join(folder, "extensions"), { watch: true });
  await started.loader.watching;
  return started;
}

const goes = ({ host, until }: Started, tool: string) => until(() => host.registry.get("tool", tool) === undefined);

test.each(["file", "folder"])(
  "a link whose %s is away for long, or comes later, is a unit as soon as it leads somewhere",
  async (kind) => {
    const entry = kind === "file" ? "build" : "build/index.ts";
    const folder = await folderWith({ [`out/${entry}`]: toolFile("t", 1), "extensions/readme.md": "" });
    const named = kind === "file" ? "build.ts" : "build";
    if (kind === "file") await rename(join(folder, "out/build"), join(folder, "out/build.ts"));
    const path = join(folder, "extensions", named);
    await symlink(join(folder, "out", named), path);
    // One that leads nowhere from the start, over a second link, into a folder that is not there.
    await symlink(join(folder, "absent/second.ts"), join(folder, "first.ts"));
    await symlink("../first.ts", join(folder, "extensions/later.ts"));
    const started = await follow(folder);
    expect(await started.call("t")).toBe(1);
    await rename(join(folder, "out"), join(folder, "away"));
    await goes(started, "t");
    await rename(join(folder, "away"), join(folder, "out"));
    await started.answers("t", 1);
    await mkdir(join(folder, "absent"));
    await writeFile(join(folder, "absent/second.ts"), toolFile("later", 2));
    await started.answers("later", 2);
    expect(started.host.reports).toEqual([]);
  },
);

test("what a link waits for is not missed when the watches are set anew at the moment it comes", async () => {
  const folder = await folderWith({ "extensions/other.ts": toolFile("other", 0), "extensions/a.ts": toolFile("t", 1) });
  await symlink("../absent/later.ts", join(folder, "extensions/later.ts"));
  const started = await follow(folder);
  // The looks that follow the setting of the first watches are over.
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
  mkdirSync(join(folder, "absent"));
  writeFileSync(join(folder, "absent/later.ts"), toolFile("later", 2));
  // Before any event can be told of.
  const disabled = started.loader.setEnabled(join(folder, "extensions/other.ts"), false);
  await started.answers("later", 2);
  await disabled;
});

test("a file that two links, or two roots, lead to stays as long as one of them does", async () => {
  const folder = await folderWith({ "out/x.ts": toolFile("t", 1), "extensions/readme.md": "", "other/readme.md": "" });
  for (const link of ["extensions/a.ts", "extensions/b.ts", "other/c.ts"]) await symlink("../out/x.ts", join(folder, link));
  const started = await follow(folder);
  await started.loader.addRoot({ path: join(folder, "other"), origin: "project", kind: "folder" });
  const paths = () => started.loader.units().map((unit) => unit.path);
  expect(paths()).toEqual([join(folder, "extensions/a.ts")]);
  const generation = started.host.registry.get("tool", "t")?.scope;
  let missing = 0;
  started.host.registry.onChange(() => {
    if (started.host.registry.get("tool", "t") === undefined) missing++;
  });
  await rm(join(folder, "extensions/a.ts"));
  for (const began = Date.now(); paths()[0] !== join(folder, "extensions/b.ts"); ) {
    if (Date.now() - began > 10_000) throw new Error(`The unit did not go over to the other link: ${paths()}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  expect([missing, started.host.registry.get("tool", "t")?.scope === generation]).toEqual([0, true]);
  await rm(join(folder, "extensions/b.ts"));
  await started.until(() => {
    const scope = started.host.registry.get("tool", "t")?.scope;
    return scope !== undefined && scope !== generation;
  });
  expect(started.host.registry.get("tool", "t")?.scope.owner.origin).toBe("project");
  await started.loader.removeRoot(join(folder, "other"));
  expect(started.host.registry.get("tool", "t")).toBeUndefined();
});

test("a manifest that names another entry, an absent one, or goes; what is wrong is told once and not tried over and over", async () => {
  const folder = await folderWith({
    "extensions/m/package.json": '{"mortise": "./a.ts"}',
    "extensions/m/a.ts": toolFile("t", "a"),
    "extensions/m/b.ts": toolFile("t", "b"),
  });
  const started = await follow(folder);
  const manifest = (text: string) => writeFile(join(folder, "extensions/m/package.json"), text);
  const told = (text: string) => started.host.reported((report) => String(report.error).includes(text));
  expect(await started.call("t")).toBe("a");
  await manifest('{"mortise": "./b.ts"}');
  await started.answers("t", "b");
  await manifest('{"mortise": "./c.ts"}');
  await told("c.ts, where there is no module");
  await manifest('{"mortise": "./d.ts"}');
  await told("d.ts, where there is no module");
  expect(await started.call("t")).toBe("b");
  await writeFile(join(folder, "extensions/m/d.ts"), toolFile("t", "d"));
  await started.answers("t", "d");
  // Without it every file is a contribution, and three have one name.
  await rm(join(folder, "extensions/m/package.json"));
  await told("defined twice");
  const { generation } = started.host.reports.at(-1) ?? {};
  await Promise.all(["a.ts", "b.ts"].map((name) => rm(join(folder, "extensions/m", name))));
  await started.until(() => started.loader.units()[0]?.error === undefined);
  expect(started.host.registry.get("tool", "t")?.scope.generation).toBeLessThanOrEqual(Number(generation) + 2);
  expect(started.host.reports).toHaveLength(3);
});

test("a file that becomes a folder of the same name, and the other way round, is never missing", async () => {
  const folder = await folderWith({ "extensions/x.ts": toolFile("t", 1) });
  const started = await follow(folder);
  const path = join(folder, "extensions/x.ts");
  let missing = 0;
  started.host.registry.onChange(() => {
    if (started.host.registry.get("tool", "t") === undefined) missing++;
  });
  await rm(path);
  await write(path, { "index.ts": toolFile("t", 2) });
  await started.answers("t", 2);
  await rm(path, { recursive: true });
  await writeFile(path, toolFile("t", 3));
  await started.answers("t", 3);
  expect(missing).toBe(0);
  // A second absence is acted upon like the first.
  await rm(path);
  await goes(started, "t");
  expect(started.host.reports).toEqual([]);
});
