// Built-ins as units like any other, and units that need services of others.
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { createToken, defineExtension, defineService } from "../../../core/extension.ts";
import { answering, builtin, folderWith, start, stopLoaders, toolFile, write } from "./_support.ts";

afterEach(stopLoaders);

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
