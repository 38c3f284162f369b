// Files that a unit reads while it runs are followed as those it read at its load.
import { mkdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { folderWith, start, stopLoaders, write } from "./_support.ts";

afterEach(stopLoaders);

/** A tool whose answer comes from what it loads when it is called. */
const tool = (load: string) => `import { defineTool, z } from "mortise/extension";
export default defineTool({ name: "ver", description: "d", params: z.object({}), run: async () => ${load} });
`;

test.each([
  ["import() of a .ts", '(await import("./_late.ts")).n', "_late.ts", (n: string) => `export const n = "${n}";`],
  ["import() of an .mjs", '(await import("./_late.mjs")).n', "_late.mjs", (n: string) => `export const n = "${n}";`],
  ["require of a .cjs", 'require("./_late.cjs").n', "_late.cjs", (n: string) => `exports.n = "${n}";`],
  ["require of a .json", 'require("./_late.json").n', "_late.json", (n: string) => `{"n": "${n}"}`],
  [
    "import() of a file in another folder",
    '(await import("../lib/late.ts")).n',
    "../lib/late.ts",
    (n: string) => `export const n = "${n}";`,
  ],
])("%s by a tool that runs", async (_name, load, path, text) => {
  const folder = await folderWith();
  const root = join(folder, "extensions");
  await mkdir(join(folder, "lib"));
  await write(root, { "x.ts": tool(load), [path]: text("one") });
  const started = await start(root, { watch: true });
  expect(await started.call("ver")).toBe("one");
  await writeFile(join(root, path), text("two"));
  await started.answers("ver", "two", 2000);
  await writeFile(join(root, `${path}.tmp`), text("three"));
  await rename(join(root, `${path}.tmp`), join(root, path));
  await started.answers("ver", "three", 2000);
  expect(started.host.reports).toEqual([]);
});

test("a file that was looked for in vain, and a link that is pointed elsewhere", async () => {
  const folder = await folderWith({ "one.ts": `export const n = "one";`, "two.ts": `export const n = "two";` });
  const root = join(folder, "extensions");
  await write(root, { "x.ts": tool(`import("./_late.ts").then((late) => late.n, () => "none")`) });
  const started = await start(root, { watch: true });
  expect(await started.call("ver")).toBe("none");
  await symlink("../one.ts", join(root, "_late.ts"));
  await started.answers("ver", "one", 2000);
  await rm(join(root, "_late.ts"));
  await symlink("../two.ts", join(root, "_late.ts"));
  await started.answers("ver", "two", 2000);
});

test("a call of an old version gets the files that version evaluated, after they are gone or others", async () => {
  const world = globalThis as Record<string, unknown>;
  let release = () => {};
  world["deleted"] = new Promise<void>((resolve) => {
    release = resolve;
  });
  const late = `(async () => {
    await globalThis.deleted;
    const lib = await import("./_lib.js");
    const again = await import("./_lib");
    return [lib === again, lib.n, require("./_old.cjs").n, (await import("./_data.json")).default.n, lib.other === await import("./sub/_other.ts")].join();
  })()`;
  const folder = await folderWith({
    "x.ts": `import "./_lib.ts"; import "./_old.cjs"; import "./_data.json"; ${tool(late)}`,
    "_lib.ts": `export const n = "lib"; import * as other from "./sub/_other.ts"; export { other };`,
    "_old.cjs": `exports.n = "old";`,
    "_data.json": `{"n": "data"}`,
    "sub/_other.ts": "export const o = 1;",
  });
  const started = await start(folder, { watch: true });
  await started.loader.watching;
  const old = started.host.registry.get("tool", "ver")?.scope;
  const answer = started.call("ver");
  await write(folder, { "x.ts": tool(`"new"`), "_data.json": `{"n": "newer"}` });
  for (const path of ["_lib.ts", "_old.cjs", "sub"]) await rm(join(folder, path), { recursive: true });
  const { registry } = started.host;
  await started.until(() => registry.get("tool", "ver")?.scope !== old, 10_000);
  expect(await started.call("ver")).toBe("new");
  release();
  expect(await answer).toBe("true,lib,old,data,true");
  delete world["deleted"];
});
