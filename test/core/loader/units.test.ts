// Which units there are, which answers a name, and in what order they come.
import { mkdir, rename, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { answering, builtin, folderWith, start, stopLoaders, toolFile, write } from "./_support.ts";

afterEach(stopLoaders);

describe("discovery", () => {
  test("files, folders with an index, folders with a manifest, folders of contributions; editors' leftovers are none", async () => {
    const folder = await folderWith({
      "a.ts": toolFile("a", 1),
      "b.mjs": toolFile("b", 1).replace(" as string", ""),
      "indexed/index.ts": `export { default } from "./lib"`,
      "indexed/lib.ts": toolFile("indexed", 1),
      "piped/package.json": `{"pi":{"extensions":["./src/main.ts"]}}`,
      "piped/src/main.ts": toolFile("piped", 1),
      "omped/package.json": `{"omp":["./x.ts"]}`,
      "omped/x.ts": toolFile("omped", 1),
      "veyyoned/package.json": `{"veyyon":{"extensions":"x.ts"},"omp":["./never.ts"]}`,
      "veyyoned/x.ts": toolFile("veyyoned", 1),
      "own/package.json": `{"mortise":"entry","pi":{"extensions":["./never.ts"]}}`,
      "own/entry.ts": toolFile("own", 1),
      "many/one.ts": toolFile("one", 1),
      "many/two.ts": toolFile("two", 1),
      "many/_helper.ts": "throw new Error('never evaluated')",
      "many/one.test.ts": "throw new Error('never evaluated')",
      "many/types.d.ts": "export {}",
      "empty/readme.md": "",
      "_draft.ts": "throw 1",
      ".hidden.ts": "throw 1",
      "x.ts~": "throw 1",
      ".a.ts.swp": "throw 1",
      "a.ts.tmp": "throw 1",
      "4913": "",
      "a.test.ts": "throw 1",
      "node_modules/p/index.js": "throw 1",
      "notes.md": "",
    });
    const { loader, host } = await start(folder);
    expect(host.reports).toEqual([]);
    expect(
      host.registry
        .list("tool")
        .map((entry) => entry.name)
        .sort(),
    ).toEqual(["a", "b", "indexed", "omped", "one", "own", "piped", "two", "veyyoned"]);
    expect(loader.units().map((unit) => unit.path.slice(folder.length + 1))).toEqual([
      "a.ts",
      "b.mjs",
      "indexed",
      "many",
      "omped",
      "own",
      "piped",
      "veyyoned",
    ]);
  });

  test("a unit reached by two ways is loaded once", async () => {
    const folder = await folderWith({ "real/x.ts": toolFile("x", 1), "roots/.keep": "" });
    await symlink(join(folder, "real/x.ts"), join(folder, "roots/y.ts"));
    const { loader } = await start(join(folder, "roots"), {
      roots: [
        { path: join(folder, "roots"), origin: "user", kind: "folder" },
        { path: join(folder, "real/x.ts"), origin: "cli", kind: "unit" },
      ],
    });
    expect(loader.units()).toHaveLength(1);
  });

  test("one bad unit never stops start-up; each failure names its unit", async () => {
    const folder = await folderWith({
      "empty.ts": "export const x = 1",
      "list.ts": "export default []",
      "plain.ts": "export default { name: 'x' }",
      "syntax.ts": "export default (",
      "throws.ts": "throw new Error('at load')",
      "manifest/package.json": "{ not json",
      "wrong/package.json": `{"mortise":{"extensions":3}}`,
      "lost/package.json": `{"mortise":"./gone.ts"}`,
      "good.ts": toolFile("good", "yes"),
    });
    const { loader, host, call } = await start(folder);
    expect(await call("good")).toBe("yes");
    const failed = loader.units().filter((unit) => unit.state === "failed");
    expect(failed.map((unit) => unit.path.slice(folder.length + 1))).toEqual([
      "empty.ts",
      "list.ts",
      "lost",
      "manifest",
      "plain.ts",
      "syntax.ts",
      "throws.ts",
      "wrong",
    ]);
    const texts = Object.fromEntries(host.reports.map((report) => [report.owner.slice(folder.length + 1), String(report.error)]));
    expect(texts["empty.ts"]).toMatch(/must export a definition .* found nothing/);
    expect(texts["list.ts"]).toContain("found an empty list");
    expect(texts["plain.ts"]).toContain("found an object with name");
    expect(texts["syntax.ts"]).toMatch(/syntax\.ts:1:\d+/);
    expect(texts["lost"]).toContain("gone.ts");
    expect(texts["wrong"]).toContain("must be a path");
    expect(host.reports.every((report) => report.phase === "load" && report.event === "load")).toBe(true);
  });
});

describe("names", () => {
  test("rank, then discovery order; a duplicate within a rank is shadowed and reported once", async () => {
    const folder = await folderWith({
      "user/b.ts": toolFile("t", "b"),
      "user/a.ts": toolFile("t", "a"),
      "cli.ts": toolFile("t", "cli"),
    });
    const { loader, host, call } = await start(undefined, {
      builtins: [builtin("t", answering("t", "builtin"))],
      roots: [
        { path: join(folder, "user"), origin: "user", kind: "folder" },
        { path: join(folder, "cli.ts"), origin: "cli", kind: "unit" },
      ],
    });
    expect(await call("t")).toBe("cli");
    expect(host.lines.filter((line) => line.includes("hides"))).toHaveLength(new Set(host.lines).size);
    const order = [];
    for (const unit of loader.units().reverse()) {
      order.push(await call("t"));
      await loader.setEnabled(unit.id, false);
    }
    expect(order).toEqual(["cli", "a", "a", "builtin"]);
    expect(host.registry.get("tool", "t")).toBeUndefined();
    for (const unit of loader.units()) await loader.setEnabled(unit.id, true);
    expect(await call("t")).toBe("cli");
    const info = loader.units().find((unit) => unit.path.endsWith("a.ts"));
    expect(info?.shadowedBy).toEqual([{ key: "tool:t", owner: join(folder, "cli.ts") }]);
    expect(info?.contributes).toEqual(["tool:t"]);
  });

  test("a name twice in one unit, a name outside the grammar and a schema without JSON Schema fail the load", async () => {
    const tool = (name: string, params: string) =>
      `defineTool({ name: ${JSON.stringify(name)}, description: "", params: ${params}, run: () => "" })`;
    const file = (text: string) => `import { defineTool, defineExtension, z } from "mortise/extension"; export default ${text}`;
    const folder = await folderWith({
      "twice.ts": file(`[${tool("x", "z.object({})")}, ${tool("x", "z.object({})")}]`),
      "late.ts": file(
        `defineExtension({ name: "l", contributes: [${tool("x", "z.object({})")}], setup(s) { s.add(${tool("x", "z.object({})")}) } })`,
      ),
      "grammar.ts": file(tool("no spaces", "z.object({})")),
      "schema.ts": file(tool("s", "z.object({ f: z.custom(() => true).transform(String), d: z.map(z.string(), z.string()) })")),
      "text.ts": file(tool("s2", "z.string()")),
      "old.ts": file(tool("s3", "{ _def: {}, parse() {} }")),
    });
    const { host } = await start(folder);
    const texts = Object.fromEntries(
      host.reports.map((report) => [report.owner.slice(folder.length + 1), `${report.phase}: ${report.error}`]),
    );
    expect(texts["twice.ts"]).toMatch(/validate: .*tool "x" is defined twice/);
    expect(texts["late.ts"]).toMatch(/validate: .*defined twice/);
    expect(texts["grammar.ts"]).toMatch(/validate: .*"no spaces" is not allowed/);
    expect(texts["schema.ts"]).toMatch(/validate: .*tool "s" cannot be sent/);
    expect(texts["text.ts"]).toMatch(/a tool takes an object, found string/);
    expect(texts["old.ts"]).toMatch(/another version of zod/);
    expect(host.registry.list("tool")).toEqual([]);
  });
});

describe("roots", () => {
  test("reload test 30: a root added later loads hot and is removed in one swap; an untrusted one is never evaluated", async () => {
    const folder = await folderWith({
      "user/a.ts": toolFile("t", "user"),
      "project/b.ts": toolFile("t", "project"),
      "project/c.ts": toolFile("u", "c"),
    });
    const { loader, call, host } = await start(join(folder, "user"));
    expect(await call("t")).toBe("user");
    const reports = await loader.addRoot({ path: join(folder, "project"), origin: "project", kind: "folder" });
    expect(reports.map((report) => report.outcome)).toEqual(["loaded", "loaded"]);
    expect(await call("t")).toBe("project");
    let swaps = 0;
    host.registry.onChange(() => swaps++);
    await loader.removeRoot(join(folder, "project"));
    expect(swaps).toBe(1);
    expect(await call("t")).toBe("user");
    expect(host.registry.get("tool", "u")).toBeUndefined();
  });

  test("a unit slower than the patience follows on its own; order of discovery decides, not of arrival", async () => {
    const folder = await folderWith({
      "a.ts": `await (globalThis as any).held;\n${toolFile("t", "slow a")}`,
      "b.ts": toolFile("t", "quick b"),
    });
    const world = globalThis as Record<string, unknown>;
    let release = () => {};
    world["held"] = new Promise<void>((resolve) => {
      release = resolve;
    });
    const { answers } = await start(folder, { patienceMs: 1 });
    // As long as the other one is held, this one answers, be it late itself.
    await answers("t", "quick b");
    release();
    delete world["held"];
    await answers("t", "slow a");
  });

  test("a unit found later takes the place its path gives it", async () => {
    const folder = await folderWith({ "a.ts": toolFile("t", "a"), "c.ts": toolFile("t", "c") });
    const { loader, call } = await start(folder);
    await write(folder, { "b.ts": toolFile("t", "b") });
    await loader.reload();
    await loader.setEnabled(join(folder, "a.ts"), false);
    expect(await call("t")).toBe("b");
    await mkdir(join(folder, "sub"));
    await rename(join(folder, "b.ts"), join(folder, "sub/_b.ts"));
    await rm(join(folder, "sub"), { recursive: true });
    expect(await call("t")).toBe("b");
  });
});
