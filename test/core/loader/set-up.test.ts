// What a set-up may do, what a failing one leaves, and what it hands to the next version.
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { defineExtension, defineTool, z } from "../../../core/extension.ts";
import { folderWith, start, stopLoaders, write } from "./_support.ts";

afterEach(stopLoaders);

const answering = (name: string, answer: string) =>
  defineTool({ name, description: "d", params: z.object({}), run: () => answer });

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
