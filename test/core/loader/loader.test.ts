import { mkdir, rename, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { createToken, defineExtension, defineService, defineTool, z } from "../../../core/extension.ts";
import type { BuiltinUnit } from "../../../core/loader/host.ts";
import { folderWith, start, stopLoaders, toolFile, write } from "./_support.ts";

afterEach(stopLoaders);

const answering = (name: string, answer: string) =>
  defineTool({ name, description: "d", params: z.object({}), run: () => answer });
const builtin = (name: string, ...definitions: unknown[]): BuiltinUnit => ({
  id: `builtin:${name}`,
  name,
  definitions: () => definitions,
});

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

describe("set-up", () => {
  const extension = (body: string, more = "") => `import { defineExtension, defineTool, z } from "mortise/extension"; ${more}
    const tool = (name: string, answer: string) => defineTool({ name, description: "", params: z.object({}), run: () => answer });
    export default defineExtension({ name: "e", contributes: [tool("own", "o")], async setup(scope) { ${body} } });`;

  test("additions go live with the swap, later ones at once; sets are replaced whole", async () => {
    const folder = await folderWith({
      "e.ts":
        extension(`scope.add(tool("early", "e")); const remove = scope.add(tool("never", "n")); remove(); scope.replace("set", [tool("s1", "1")]);
        scope.replace("set", [tool("s2", "2")]); (globalThis as any).lateScope = scope; (globalThis as any).makeTool = tool;`),
    });
    const { host, loader } = await start(folder);
    const names = () =>
      host.registry
        .list("tool")
        .map((entry) => entry.name)
        .sort();
    expect(names()).toEqual(["early", "own", "s2"]);
    const world = globalThis as unknown as {
      lateScope?: import("../../../core/kernel/definition.ts").SetupScope;
      makeTool?: (name: string, answer: string) => never;
    };
    const { lateScope, makeTool } = world;
    if (lateScope === undefined || makeTool === undefined) throw new Error("The set-up did not run");
    const undo = lateScope.add(makeTool("late", "l"));
    lateScope.replace("set", [makeTool("s3", "3"), makeTool("s4", "4")]);
    expect(names()).toEqual(["early", "late", "own", "s3", "s4"]);
    undo();
    expect(names()).toEqual(["early", "own", "s3", "s4"]);
    const { version } = host.registry;
    expect(() => lateScope.replace("set", [makeTool("bad name", "x")])).toThrow(/not allowed/);
    expect(host.registry.version).toBe(version);
    await loader.reload();
    // reload test 16: a stale handle is a contained, attributed error.
    await expect.poll(() => lateScope.signal.aborted).toBe(true);
    expect(() => lateScope.add(makeTool("stale", "x"))).toThrow(/was unloaded/);
    delete world.lateScope;
    delete world.makeTool;
  });

  test("reload test 7: a throw in set-up, sync or async, leaves nothing behind and the old version in place", async () => {
    const folder = await folderWith({ "e.ts": extension("") });
    const { loader, host, call } = await start(folder);
    const undone: string[] = [];
    host.registry.onChange(() => undone.push("swap"));
    for (const body of ["throw new Error('sync')", "scope.add(tool('half', 'h')); await null; throw new Error('async')"]) {
      const { version } = host.registry;
      await write(folder, { "e.ts": extension(`scope.own(() => { (globalThis as any).undone = true }); ${body}`) });
      const [report] = await loader.reload(join(folder, "e.ts"));
      expect(report).toMatchObject({ outcome: "failed" });
      expect(host.registry.version).toBe(version);
      expect(await call("own")).toBe("o");
      expect((globalThis as Record<string, unknown>)["undone"]).toBe(true);
      delete (globalThis as Record<string, unknown>)["undone"];
    }
    expect(undone).toEqual([]);
    expect(host.reports.map((report) => report.event)).toEqual(["setup", "setup"]);
  });

  test("reload test 8: a load or set-up that hangs ends at the limit; the next edit recovers", async () => {
    const folder = await folderWith({ "e.ts": extension("") });
    const { loader, host, call } = await start(folder, { loadLimitMs: 1500, setupLimitMs: 100 });
    await write(folder, { "e.ts": "await new Promise(() => {})" });
    expect((await loader.reload(join(folder, "e.ts")))[0]?.outcome).toBe("failed");
    await write(folder, { "e.ts": extension("await new Promise(() => {})") });
    expect((await loader.reload(join(folder, "e.ts")))[0]?.outcome).toBe("failed");
    expect(host.reports.map((report) => String(report.error))).toEqual([
      expect.stringContaining("Loading took longer"),
      expect.stringContaining("Set-up took longer"),
    ]);
    expect(await call("own")).toBe("o");
    await write(folder, { "e.ts": extension("scope.add(tool('back', 'b'))") });
    expect((await loader.reload(join(folder, "e.ts")))[0]?.outcome).toBe("loaded");
    expect(await call("back")).toBe("b");
  });

  test("reload test 27: state is carried, migrated, or dropped and reported", async () => {
    const file = (version: string, body: string) => extension(body, `export const hot = ${version};`);
    const probe = "scope.add(tool('seen', JSON.stringify(scope.hot.data ?? null)));";
    const folder = await folderWith({ "e.ts": file("{ version: 1 }", `${probe} scope.hot.data = { n: 1 };`) });
    const { loader, host, call } = await start(folder);
    const step = async (text: string) => {
      await write(folder, { "e.ts": text });
      expect((await loader.reload(join(folder, "e.ts")))[0]?.outcome).toBe("loaded");
      return call("seen");
    };
    expect(await step(file("{ version: 1 }", `${probe} scope.hot.data = { n: 2 };`))).toBe('{"n":1}');
    expect(await step(file("{ version: 2, migrate: (old: any, from: unknown) => ({ from, n: old.n * 10 }) }", probe))).toBe(
      '{"from":1,"n":20}',
    );
    expect(host.reports).toEqual([]);
    expect(await step(file("{ version: 3 }", `${probe} scope.hot.data = { f() {} };`))).toBe("null");
    expect(await step(file("{ version: 3 }", probe))).toBe("null");
    expect(host.reports.map((report) => report.event)).toEqual(["hot", "hot"]);
    expect(String(host.reports[0]?.error)).toContain("it is of version 2, this code wants 3");
  });

  test("a pi-style function goes to the dialect, which sees type imports as well", async () => {
    const folder = await folderWith({
      "p/package.json": `{"pi":{"extensions":["./x.ts"]}}`,
      "p/x.ts": `import type { ExtensionAPI } from "@earendil-works/pi-coding-agent"; export default function (pi: ExtensionAPI) { return pi }`,
    });
    const seen: unknown[] = [];
    const { host } = await start(folder, {
      adaptFactory: (factory, info) => {
        seen.push(info);
        return defineExtension({ name: "pi", setup: (scope) => void scope.add(answering("adapted", String(factory("api")))) });
      },
    });
    expect(host.registry.get("tool", "adapted")).toBeDefined();
    expect(seen).toEqual([{ unitId: join(folder, "p"), specifiers: ["@earendil-works/pi-coding-agent"], manifestKey: "pi" }]);
  });
});

describe("built-ins", () => {
  test("are live before the first await, in one swap; one that fails does not stop the others", async () => {
    const host = (await import("./_support.ts")).testHost();
    const { Loader } = await import("../../../core/loader/loader.ts");
    let swaps = 0;
    host.registry.onChange(() => swaps++);
    const loader = new Loader(host, {
      builtins: [
        builtin("one", answering("one", "1")),
        builtin("bad", { not: "a definition" }),
        builtin("two", defineExtension({ name: "two", setup: (scope) => void scope.add(answering("two", "2")) })),
      ],
      roots: [],
      virtualModules: () => Promise.resolve({}),
    });
    const started = loader.start();
    expect(host.registry.list("tool").map((entry) => entry.name)).toEqual(["one", "two"]);
    expect(swaps).toBe(1);
    await started;
    expect(host.reports.map((report) => report.owner)).toEqual(["builtin:bad"]);
    await loader.stop();
    expect(host.registry.list("tool")).toEqual([]);
  });

  test("are taken out and put back live, with new service instances", async () => {
    const token = createToken<{ n: number }>("counter");
    let made = 0;
    const { loader, host } = await start(undefined, {
      builtins: [builtin("svc", defineService(token, { create: () => ({ n: ++made }) }), answering("t", "x"))],
    });
    const first = host.registry.get("service", "counter")?.definition;
    await loader.setEnabled("builtin:svc", false);
    expect(host.registry.get("tool", "t")).toBeUndefined();
    expect(loader.units()[0]?.state).toBe("disabled");
    await loader.setEnabled("builtin:svc", true);
    expect(host.registry.get("tool", "t")).toBeDefined();
    expect(host.registry.get("service", "counter")?.definition).not.toBe(first);
    await expect(loader.setEnabled("builtin:nope", true)).rejects.toThrow(
      /No extension "builtin:nope" is known; the known ones are builtin:svc/,
    );
  });

  test("with --dev they are read from their sources; broken sources leave the compiled form in place", async () => {
    const folder = await folderWith({ "one/a.ts": toolFile("one", "source"), "two.ts": "export default (" });
    const { host, call, loader } = await start(undefined, {
      dev: true,
      sourceRoot: folder,
      builtins: [
        { ...builtin("one", answering("one", "compiled")), sources: "one" },
        { ...builtin("two", answering("two", "compiled")), sources: "two.ts" },
      ],
    });
    expect([await call("one"), await call("two")]).toEqual(["source", "compiled"]);
    expect(host.reports.map((report) => report.owner)).toEqual(["builtin:two"]);
    await write(folder, { "two.ts": toolFile("two", "fixed") });
    await loader.reload("builtin:two");
    expect(await call("two")).toBe("fixed");
  });

  test("reload test 23: a dependant is activated again when the owner of a required service changes", async () => {
    const token = createToken<string>("base");
    const setups: number[] = [];
    const dependant = defineService(createToken<string>("top"), { requires: [token], create: () => "" });
    const folder = await folderWith({});
    const { loader } = await start(folder, {
      builtins: [
        builtin("base", defineService(token, { create: () => "b" })),
        builtin("top", dependant, defineExtension({ name: "top", setup: () => void setups.push(1) })),
      ],
    });
    expect(setups).toHaveLength(1);
    await loader.reload("builtin:base");
    await loader.settled();
    expect(setups).toHaveLength(2);
  });

  test("reload test 23: without what it requires a unit waits, its tools gone; it is back with it, in order, also at the start", async () => {
    const unit = (name: string, more: string) =>
      `import { createToken, defineExtension, defineService, defineTool, z } from "mortise/extension";
       export default [${more}, defineTool({ name: "${name}", description: "", params: z.object({}), run: () => "${name}" })];`;
    const service = (name: string, requires: string[]) =>
      `defineService(createToken("${name}"), { requires: [${requires.map((one) => `createToken("${one}")`)}], create: () => ({}) })`;
    // In discovery order the last comes first.
    const folder = await folderWith({
      "a-third.ts": unit("third", service("c", ["b"])),
      "b-second.ts": unit("second", service("b", ["a"])),
      "c-first.ts": unit("first", service("a", [])),
    });
    const id = (name: string) => join(folder, `${name}.ts`);
    const { loader, host } = await start(folder);
    const live = () =>
      host.registry
        .list("tool")
        .map(({ name }) => name)
        .sort()
        .join(" ");
    const states = () =>
      loader
        .units()
        .map(({ state }) => state)
        .join(" ");
    expect([live(), states()]).toEqual(["first second third", "active active active"]);
    expect(host.reports).toEqual([]);
    const versions: string[] = [];
    host.registry.onChange(() => versions.push(live()));
    await loader.setEnabled(id("c-first"), false);
    expect([live(), states()]).toEqual(["", "waiting waiting disabled"]);
    expect(loader.units()[1]?.error).toContain('It waits for "a"');
    // Edited while it waits: looked at, and waiting on.
    await write(folder, { "b-second.ts": unit("second", service("b", ["a", "x"])) });
    expect((await loader.reload(id("b-second")))[0]?.outcome).toBe("waiting");
    await loader.setEnabled(id("c-first"), true);
    await loader.settled();
    expect(live()).toBe("first");
    await write(folder, { "b-second.ts": unit("second", service("b", ["a"])) });
    await loader.reload(id("b-second"));
    await loader.settled();
    expect([live(), states()]).toEqual(["first second third", "active active active"]);
    expect(loader.units().map(({ error }) => error)).toEqual([undefined, undefined, undefined]);
    // A version that wants what is not there leaves the one before in place, and is tried again when it comes.
    await write(folder, { "a-third.ts": unit("fourth", service("c", ["b", "y"])) });
    expect((await loader.reload(id("a-third")))[0]).toMatchObject({ outcome: "failed" });
    expect(live()).toBe("first second third");
    await write(folder, { "d-y.ts": unit("y", service("y", [])) });
    await loader.reload();
    await loader.settled();
    expect(live()).toBe("first fourth second y");
    expect(new Set(host.reports.map(({ owner, event }) => `${event} ${owner}`))).toEqual(new Set([`setup ${id("a-third")}`]));
  });
});

describe("generations", () => {
  const slow = (answer: string) => `import { defineTool, z } from "mortise/extension"; let finish: any;
    export default [defineTool({ name: "slow", description: "", params: z.object({}), run: (ctx) => new Promise((go, fail) => { (globalThis as any).finishSlow = () => go("${answer}"); ctx.signal.addEventListener("abort", () => fail(ctx.signal.reason)) }) }),
      defineTool({ name: "quick", description: "", params: z.object({}), run: () => "${answer}" })];`;
  const finishSlow = () => (globalThis as unknown as { finishSlow(): void }).finishSlow();

  test("reload test 10: a call in flight ends on the old version, a second one runs on the new", async () => {
    const folder = await folderWith({ "s.ts": slow("old") });
    const { loader, call, host } = await start(folder);
    const running = call("slow");
    const old = host.registry.get("tool", "slow")?.scope;
    await write(folder, { "s.ts": slow("new") });
    await loader.reload();
    expect(await call("quick")).toBe("new");
    expect(loader.units()[0]).toMatchObject({ state: "active", generation: 2, draining: 1 });
    expect(old?.state).toBe("draining");
    finishSlow();
    expect(await running).toBe("old");
    await expect.poll(() => old?.state).toBe("disposed");
    expect(loader.units()[0]?.draining).toBeUndefined();
  });

  test("reload test 12: a third generation forces the middle one out; never three", async () => {
    const folder = await folderWith({ "s.ts": slow("1") });
    const { loader, call, host } = await start(folder);
    const first = call("slow");
    const finishFirst = (globalThis as unknown as { finishSlow(): void }).finishSlow;
    await write(folder, { "s.ts": slow("2") });
    await loader.reload();
    const middle = host.registry.get("tool", "slow")?.scope;
    const second = call("slow").catch((error: Error) => error.message);
    await write(folder, { "s.ts": slow("3") });
    await loader.reload();
    expect(await second).toContain("was unloaded");
    expect(middle?.state).toBe("disposed");
    expect(loader.units()[0]).toMatchObject({ generation: 3, draining: 1 });
    finishFirst();
    expect(await first).toBe("1");
  });

  test("reload test 11: calls other than runs are given up at the drain limit, runs are not", async () => {
    const folder = await folderWith({ "s.ts": slow("1") });
    const { loader, host } = await start(folder, { drainLimitMs: 30 });
    const scope = host.registry.get("tool", "slow")?.scope;
    const release = scope?.lease("call");
    await write(folder, { "s.ts": slow("2") });
    await loader.reload();
    await expect.poll(() => scope?.signal.aborted).toBe(true);
    release?.();
    const second = host.registry.get("tool", "slow")?.scope;
    const releaseRun = second?.lease("run");
    await write(folder, { "s.ts": slow("3") });
    await loader.reload();
    await new Promise((resolve) => setTimeout(resolve, 80));
    expect(second?.state).toBe("draining");
    releaseRun?.();
    await expect.poll(() => second?.state).toBe("disposed");
  });

  test("reload test 24: a unit that reloads itself from its own call is answered at the swap", async () => {
    const folder = await folderWith({
      "s.ts": toolFile("self", "x").replace(`run: () => "x" as string`, `run: () => (globalThis as any).reloadSelf()`),
    });
    const { loader, call } = await start(folder);
    (globalThis as Record<string, unknown>)["reloadSelf"] = async () => (await loader.reload(join(folder, "s.ts")))[0]?.outcome;
    expect(await call("self")).toBe("loaded");
    delete (globalThis as Record<string, unknown>)["reloadSelf"];
  });

  test("reload test 28: an undo that hangs does not hold up the next version", async () => {
    const hanging = (
      answer: string,
      undo: string,
    ) => `import { defineExtension, defineTool, z } from "mortise/extension"; export default defineExtension({ name: "h",
      contributes: [defineTool({ name: "t", description: "", params: z.object({}), run: () => "${answer}" })], setup(scope) { ${undo} } })`;
    const folder = await folderWith({ "h.ts": hanging("1", `scope.own(() => new Promise(() => {}), "shutdown")`) });
    const { loader, call, host } = await start(folder);
    await write(folder, { "h.ts": hanging("2", "") });
    await loader.reload();
    expect(await call("t")).toBe("2");
    const report = await host.reported((one) => one.phase === "dispose");
    expect(String(report.error)).toContain('Undoing "shutdown" took longer');
  });

  test("reload test 20 and 19: an edit during a slow load is not lost; A→B→A ends on A", async () => {
    const timed = (answer: string) => `await new Promise((go) => setTimeout(go, 60));\n${toolFile("t", answer)}`;
    const folder = await folderWith({ "t.ts": timed("A") });
    const { loader, call } = await start(folder);
    await write(folder, { "t.ts": timed("B") });
    const first = loader.reload(join(folder, "t.ts"));
    await new Promise((resolve) => setTimeout(resolve, 20));
    await write(folder, { "t.ts": timed("A") });
    await Promise.all([first, loader.reload(join(folder, "t.ts"))]);
    expect(await call("t")).toBe("A");
  });

  test("a quarantined unit is out, its gates block, and an edit brings it back", async () => {
    const gate = (
      answer: string,
    ) => `import { defineHook, defineHookPoint, defineTool, z } from "mortise/extension"; const point = defineHookPoint({ name: "gate", combine: "veto", summary: "" });
      export default [defineHook(point, () => undefined), defineTool({ name: "t", description: "", params: z.object({}), run: () => "${answer}" })]`;
    const folder = await folderWith({ "g.ts": gate("1") });
    const { loader, host, call } = await start(folder, { isGate: (name) => name === "gate" });
    loader.quarantine(join(folder, "g.ts"), "it failed 10 times");
    expect(host.registry.get("tool", "t")).toBeUndefined();
    expect(loader.units()[0]?.state).toBe("quarantined");
    const [blocker] = host.registry.all("hook");
    expect(() => blocker?.definition.run({} as never, {} as never)).toThrow(/taken out of service: it failed 10 times/);
    await write(folder, { "g.ts": "export default (" });
    await loader.reload();
    expect(host.registry.all("hook")).toEqual([blocker]);
    await write(folder, { "g.ts": gate("2") });
    await loader.reload();
    expect(await call("t")).toBe("2");
    expect(host.registry.all("hook")).toHaveLength(1);
    expect(host.registry.all("hook")[0]).not.toBe(blocker);
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
    const { call, answers } = await start(folder, { patienceMs: 1500 });
    expect(await call("t")).toBe("quick b");
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
