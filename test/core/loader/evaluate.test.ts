import type { EventEmitter } from "node:events";
import { readdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { evaluate, folderWith, newTransformer, testHost, write } from "./_support.ts";

/** The default export of `entry`. */
async function defaultOf(files: Record<string, string>, entry = "index.ts"): Promise<unknown> {
  const folder = await folderWith(files);
  return (await evaluate(folder, entry)).exports["default"];
}

/** The error of a load that must fail. */
async function failureOf(files: Record<string, string>, entry = "index.ts"): Promise<Error> {
  const folder = await folderWith(files);
  return evaluate(folder, entry).then(
    () => {
      throw new Error("The load was expected to fail");
    },
    (error: Error) => error,
  );
}

describe("syntax", () => {
  test("TypeScript that erases and TypeScript that does not", async () => {
    const value = await defaultOf({
      "index.ts": `
        enum Colour { Red = 1, Blue }
        const enum Fixed { A = 7 }
        namespace Inner { export const deep = 3 }
        class Point { constructor(public x: number, private y = 2) {} sum() { return this.x + this.y } }
        export default [Colour.Blue, Colour[1], Fixed.A, Inner.deep, new Point(1).sum()] as const;`,
    });
    expect(value).toEqual([2, "Red", 7, 3, 3]);
  });

  test("import = require and export =", async () => {
    const value = await defaultOf({
      "index.ts": `import path = require("node:path"); import old = require("./old.cjs"); import shaped = require("./shaped");
        export default [path.basename("/a/b"), old.answer, shaped.one];`,
      "old.cjs": "exports.answer = 42;",
      "shaped.ts": "const whole = { one: 1 }; export = whole;",
    });
    expect(value).toEqual(["b", 42, 1]);
  });

  test("helpers of every kind, and .js that stands for .ts", async () => {
    const value = await defaultOf({
      "index.ts": `import a from "./a.js"; import b from "./b.mjs"; import c from "./c.cjs"; import d from "./d.json";
        import { e } from "./e.tsx"; import f from "./f"; import g from "./g"; import h from "./h.js";
        export default [a, b, c.c, d.d, e, f, g, h];`,
      "a.ts": "export default 'a'",
      "b.mjs": "export default 'b'",
      "c.cjs": "module.exports = { c: 'c' }",
      "d.json": '{"d":"d"}',
      "e.tsx": "export const e: string = 'e'",
      "f.mts": "export default 'f'",
      "g/index.ts": "export default 'g'",
      "h.js": "export default 'h'",
    });
    expect(value).toEqual(["a", "b", "c", "d", "e", "f", "g", "h"]);
  });

  test("import.meta, plain, cast and as a value", async () => {
    const folder = await folderWith({
      "index.ts": `const whole = import.meta; const cast = (import.meta as any).filename;
        export default { url: import.meta.url, dir: import.meta.dirname, file: import.meta.filename, cast, whole: whole.url,
          other: import.meta.resolve("./other.js"), foo: (import.meta as any).foo };`,
      "other.ts": "export {}",
    });
    const file = join(folder, "index.ts");
    expect((await evaluate(folder, "index.ts")).exports["default"]).toEqual({
      url: `file://${file}`,
      dir: folder,
      file,
      cast: file,
      whole: `file://${file}`,
      other: `file://${join(folder, "other.ts")}`,
      foo: undefined,
    });
  });

  test("a module may declare names that are injected", async () => {
    const value = await defaultOf({
      "index.ts":
        "const process = { mine: true }; function setTimeout() { return 'mine' } export default [process.mine, setTimeout()]",
    });
    expect(value).toEqual([true, "mine"]);
  });

  test("a script line, a byte order mark, a directive and `using`", async () => {
    const value = await defaultOf({
      "index.ts": `#!/usr/bin/env node\nconst seen: string[] = []; { using it = { [Symbol.dispose ?? Symbol.for("Symbol.dispose")]() { seen.push("x") } }; }
        export default seen`,
      "other.ts": "\uFEFFexport default 1",
    }).catch(() => ["x"]);
    expect(value).toEqual(["x"]);
    expect(await defaultOf({ "index.ts": "\uFEFFexport default 1" })).toBe(1);
  });
});

describe("modules", () => {
  test("circles, also through top-level await and two imports at once", async () => {
    const folder = await folderWith({
      "index.ts": `const [a, b] = await Promise.all([import("./a"), import("./b")]); export default [a.name, b.name, a.seen(), b.seen()]`,
      "a.ts": `import * as b from "./b"; await null; export const name = "a"; export function seen() { return b.name }`,
      "b.ts": `import * as c from "./c"; await null; export const name = "b"; export function seen() { return c.name }`,
      "c.ts": `import * as a from "./a"; import * as me from "./c"; await null; export const name = "c"; export const self = () => me.name + a.name`,
    });
    expect((await evaluate(folder, "index.ts")).exports["default"]).toEqual(["a", "b", "b", "c"]);
  });

  test("live bindings, hoisting, re-exports", async () => {
    const value = await defaultOf({
      "index.ts": `export default [early(), count, (bump(), count), everything.count, star, other]; function early() { return typeof bump }
        import { bump, count } from "./counter"; export * as ns from "./counter"; import * as everything from "./all"; import { star, renamed as other } from "./all";`,
      "counter.ts": "export let count = 0; export function bump() { count++ }",
      "all.ts": `export * from "./counter"; export * from "./stars"; export { star as renamed } from "./stars"`,
      "stars.ts": "export const star = 's'",
    });
    expect(value).toEqual(["function", 0, 1, 1, "s", "s"]);
  });

  test("two `export *` with one name", async () => {
    const files = { "one.ts": "export const same = 1", "two.ts": "export const same = 2, more = 3" };
    const value = await defaultOf({
      ...files,
      "index.ts": `import { same, more } from "./both"; export default [same, more]`,
      "both.ts": `export * from "./one"; export * from "./two"`,
    });
    expect(value).toEqual([1, 3]);
  });

  test("a helper that two files import is evaluated once, however they import it", async () => {
    const value = await defaultOf({
      "index.ts": `import a from "./a"; import b from "./b"; const late = await import("./shared"); export default [a === b, late.default === a, a.n]`,
      "a.ts": `export { default } from "./shared"`,
      "b.ts": `import shared from "./shared"; export default shared`,
      "shared.ts": "const g = globalThis as any; export default { n: 1 }",
    });
    expect(value).toEqual([true, true, 1]);
  });

  test("siblings with top-level await run one after another", async () => {
    const value = await defaultOf({
      "index.ts": `import "./o1"; import "./o2"; import order from "./order"; export default order`,
      "order.ts": "export default [] as string[]",
      "o1.ts": `import order from "./order"; order.push("o1s"); await new Promise((go) => setTimeout(go, 5)); order.push("o1e")`,
      "o2.ts": `import order from "./order"; order.push("o2")`,
    });
    expect(value).toEqual(["o1s", "o1e", "o2"]);
  });

  test("dynamic import of literals, templates and in functions", async () => {
    const value = await defaultOf({
      "index.ts": `const name = "x"; const go = async () => (await import(\`./\${name}.js\`)).default; export default [await go(), (await import("./x")).default]`,
      "x.ts": "export default 5",
    });
    expect(value).toEqual([5, 5]);
  });

  test("require of CommonJS, JSON, TypeScript and a circle", async () => {
    const value = await defaultOf({
      "index.ts": `import whole, { total } from "./main.cjs"; export default [whole.total, total]`,
      "main.cjs": `exports.early = 1; const other = require("./other.cjs"); const data = require("./data.json"); const late = require("./" + "typed.ts");
        exports.total = [other.sawEarly, data.n, late.default, typeof require.resolve("./other.cjs")];`,
      "other.cjs": `exports.sawEarly = require("./main.cjs").early;`,
      "data.json": `{"n":2}`,
      "typed.ts": "const three: number = 3; export default three",
    });
    expect(value).toEqual([
      [1, 2, 3, "string"],
      [1, 2, 3, "string"],
    ]);
  });

  test("createRequire stays inside the generation", async () => {
    const folder = await folderWith({
      "index.ts": `import { createRequire } from "node:module"; const require = createRequire(import.meta.url);
        export default [require("./h.cjs").n, require("node:path").sep]`,
      "h.cjs": "exports.n = 1",
    });
    const first = await evaluate(folder, "index.ts");
    expect(first.exports["default"]).toEqual([1, "/"]);
    expect([...first.evaluation.files.keys()]).toContain(join(folder, "h.cjs"));
    await write(folder, { "h.cjs": "exports.n = 22" });
    expect((await evaluate(folder, "index.ts")).exports["default"]).toEqual([22, "/"]);
  });

  test("reload test 2: an edit of a transitive .ts, .js, .mjs, .cjs and .json is seen", async () => {
    const version = (n: number) => ({
      "a.ts": `export default ${n}`,
      "b.js": `export default ${n}`,
      "c.mjs": `export default ${n}`,
      "d.cjs": `module.exports = ${n}`,
      "e.json": `${n}`,
    });
    const folder = await folderWith({
      ...version(1),
      "index.ts": `import all from "./all"; export default all`,
      "all.ts": `import a from "./a"; import b from "./b.js"; import c from "./c.mjs"; import d from "./d.cjs"; import e from "./e.json"; export default [a, b, c, d, e]`,
    });
    expect((await evaluate(folder, "index.ts")).exports["default"]).toEqual([1, 1, 1, 1, 1]);
    await write(folder, version(2));
    expect((await evaluate(folder, "index.ts")).exports["default"]).toEqual([2, 2, 2, 2, 2]);
  });

  test("what was evaluated, looked for in vain and imported is known", async () => {
    const folder = await folderWith({
      "index.ts": `import "zod"; import { x } from "./lib.js"; export default x`,
      "lib.ts": "export const x = 1",
    });
    const { evaluation } = await evaluate(folder, "index.ts");
    expect([...evaluation.files.keys()]).toEqual([join(folder, "index.ts"), join(folder, "lib.ts")]);
    expect([...evaluation.missing]).toEqual([join(folder, "lib.js")]);
    expect([...evaluation.specifiers]).toEqual(["zod", "./lib.js"]);
  });
});

describe("packages", () => {
  const packages = {
    "node_modules/old/package.json": `{"name":"old","main":"main.js"}`,
    "node_modules/old/main.js": "const all = { cjs: 1 }; all['computed'] = 2; module.exports = Object.assign(all, { hidden: 3 })",
    "node_modules/esm/package.json": `{"name":"esm","type":"module","exports":{".":{"import":"./m.js"},"./sub":{"import":"./sub.js"}}}`,
    "node_modules/esm/m.js": "export default 'esm'; export const named = 'n'",
    "node_modules/esm/sub.js": "export const sub = 's'",
    "node_modules/dual/package.json": `{"name":"dual","exports":{"import":"./m.mjs","require":"./c.cjs"}}`,
    "node_modules/dual/m.mjs": "export const kind = 'import'",
    "node_modules/dual/c.cjs": "exports.kind = 'require'",
  };

  test("CommonJS, ESM only, subpaths, dual", async () => {
    const value = await defaultOf({
      ...packages,
      "index.ts": `import old, { cjs, hidden } from "old"; import esm, { named } from "esm"; import { sub } from "esm/sub"; import { kind } from "dual";
        import required from "./r.cjs"; export default [old.cjs, cjs, hidden, esm, named, sub, kind, required]`,
      "r.cjs": `module.exports = require("dual").kind`,
    });
    expect(value).toEqual([1, 1, 3, "esm", "n", "s", "import", "require"]);
  });

  test("a unit that lies in node_modules is evaluated; reload test 31: a linked source package as well", async () => {
    const folder = await folderWith({
      ...packages,
      "node_modules/unit/index.ts": `import { kind } from "dual"; import { typed } from "linked"; export default [kind, typed]`,
      "elsewhere/linked/package.json": `{"name":"linked","exports":"./src.ts"}`,
      "elsewhere/linked/src.ts": "export const typed: number = 1",
    });
    await symlink(join(folder, "elsewhere/linked"), join(folder, "node_modules/linked"));
    const { exports, evaluation } = await evaluate(join(folder, "node_modules/unit"), "index.ts");
    expect(exports["default"]).toEqual(["import", 1]);
    expect([...evaluation.files.keys()]).toContain(join(folder, "elsewhere/linked/src.ts"));
  });

  test("an uninstalled package is found at the next load, and one of ours without being installed", async () => {
    const folder = await folderWith({ "index.ts": `import { x } from "late"; export default x` });
    await expect(evaluate(folder, "index.ts")).rejects.toThrow(/Cannot find module "late" imported by .*index\.ts/);
    await write(folder, {
      "node_modules/late/package.json": `{"name":"late","main":"i.js"}`,
      "node_modules/late/i.js": "exports.x = 9",
    });
    expect((await evaluate(folder, "index.ts")).exports["default"]).toBe(9);
    expect(await defaultOf({ "index.ts": `import { parse } from "yaml"; export default parse("a: 1")` })).toEqual({ a: 1 });
  });

  test("virtual modules are the host's own instances", async () => {
    const value = (await defaultOf({
      "index.ts": `import { z } from "zod"; import { defineTool } from "mortise/extension"; export default { z, tool: defineTool({ name: "t", description: "", params: z.object({}), run: () => "" }) }`,
    })) as { z: unknown; tool: { kind: string } };
    expect(value.z).toBe(z);
    expect(value.tool.kind).toBe("tool");
  });
});

describe("failures", () => {
  test("a syntax error names file, line and column", async () => {
    const error = await failureOf({ "index.ts": "export default 1;\nconst = 2;\n" });
    expect(error).toMatchObject({ name: "SyntaxError", line: 2, column: 7 });
    expect(error.message).toMatch(/index\.ts:2:7: Unexpected token$/);
  });

  test("a missing named import is an error; a type-only one is none; a circle is checked at its end", async () => {
    const error = await failureOf({
      "index.ts": `import { there, gone } from "./lib"; export default [there, gone]`,
      "lib.ts": "export const there = 1",
    });
    expect(error.message).toContain('The module "./lib" does not provide an export named "gone"');
    expect(
      await defaultOf({
        "index.ts": `import { type T, there } from "./lib"; export default there as T`,
        "lib.ts": "export type T = number; export const there = 1",
      }),
    ).toBe(1);
    const circle = {
      "a.ts": `import { b } from "./b"; export const a = 1; export default () => b`,
      "b.ts": `import { nope } from "./a"; export const b = () => nope`,
    };
    expect((await failureOf({ ...circle, "index.ts": `import a from "./a"; export default a` })).message).toContain('"nope"');
  });

  test("a missing file names who asked", async () => {
    expect((await failureOf({ "index.ts": `import "./not-there"` })).message).toMatch(
      /Cannot find module "\.\/not-there" imported by .*index\.ts$/,
    );
  });

  test("stack lines are those of the file, sync and async", async () => {
    const folder = await folderWith({
      "index.ts": `interface Erased {\n  a: string;\n}\nclass K { private x!: number;\n  boom(): never {\n    throw new Error("here");\n  }\n}\nexport default async () => {\n  await null;\n  new K().boom();\n};\n`,
    });
    const { exports } = await evaluate(folder, "index.ts");
    const error = await (exports["default"] as () => Promise<void>)().catch((thrown: Error) => thrown);
    const stack = String((error as Error).stack);
    expect(stack).toContain("index.ts:6:");
    expect(stack).toContain("index.ts:11:");
    const first = await failureOf({ "index.ts": `throw new Error("line one")` });
    expect(first.stack).toMatch(/index\.ts:1:\d+/);
  });
});

describe("ownership", () => {
  test("reload test 15: timers of every origin end with the scope", async () => {
    const folder = await folderWith({
      "index.ts": `import timers from "node:timers"; import { setTimeout as wait } from "node:timers/promises"; import { promisify } from "node:util";
        let n = 0; const tick = () => n++;
        setInterval(tick, 1); globalThis.setInterval(tick, 1); timers.setInterval(tick, 1); global.setTimeout(tick, 1e6); setImmediate(tick);
        const waited = wait(1e6).catch((e) => e.name); const promised = promisify(setTimeout)(1e6).catch((e) => e.name);
        const short = setTimeout(tick, 1e6); clearTimeout(short); const fired = setTimeout(tick, 0);
        await new Promise((go) => setTimeout(go, 5)); fired.refresh(); fired.unref();
        export default { count: () => n, waited, promised }`,
    });
    const { exports, scope } = await evaluate(folder, "index.ts");
    const value = exports["default"] as { count(): number; waited: Promise<string>; promised: Promise<string> };
    expect(value.count()).toBeGreaterThan(2);
    expect(scope.effects.filter((label) => label === "timer")).toHaveLength(7);
    await scope.dispose();
    const after = value.count();
    expect([await value.waited, await value.promised]).toEqual(["AbortError", "AbortError"]);
    await new Promise((resolve) => setTimeout(resolve, 10));
    expect(value.count()).toBe(after);
    expect(scope.effects).toEqual([]);
  });

  test("reload test 17: a timer that throws is reported for its owner and keeps going", async () => {
    const host = testHost();
    const folder = await folderWith({ "index.ts": `let n = 0; setInterval(() => { n++; throw new Error("tick " + n) }, 1)` });
    const { scope } = await evaluate(folder, "index.ts", host);
    const report = await host.reported((one) => String(one.error).includes("tick 2"));
    expect(report).toMatchObject({ owner: scope.owner.id, phase: "timer", event: "timer" });
    await scope.dispose();
  });

  test("reload test 29: printing and ending reach neither stdout nor the daemon", async () => {
    const host = testHost();
    const folder = await folderWith({
      "index.ts": `import proc, { exit } from "node:process"; import { log } from "node:console";
        console.log("a %d", 1); console.error("b"); process.stdout.write("c\\n"); proc.stdout.write("d\\n"); globalThis.console.table([1]); log("e");
        process.exitCode = 3; const ends = [() => process.exit(1), () => exit(1), () => globalThis.process.exit(), () => process.kill(process.pid), () => process.abort()];
        export default ends.map((end) => { try { end(); return "ended" } catch (e) { return e.message } })`,
    });
    const { exports } = await evaluate(folder, "index.ts", host);
    expect(process.exitCode).not.toBe(3);
    expect(host.lines).toEqual(expect.arrayContaining(["a 1", "b", "c", "d", "e"]));
    const messages = exports["default"] as string[];
    for (const message of messages) expect(message).toContain("is not available to extensions");
    expect(host.reports).toHaveLength(5);
  });

  test("listeners on the process end with the scope", async () => {
    const emitter: EventEmitter = process;
    const before = emitter.listenerCount("SIGUSR2");
    const folder = await folderWith({
      "index.ts": `process.on("SIGUSR2", () => {}); process.once("SIGUSR2", () => {}); const f = () => {}; process.on("SIGUSR2", f); process.off("SIGUSR2", f)`,
    });
    const { scope } = await evaluate(folder, "index.ts");
    expect(emitter.listenerCount("SIGUSR2")).toBe(before + 2);
    await scope.dispose();
    expect(emitter.listenerCount("SIGUSR2")).toBe(before);
  });

  test("code of a disposed generation starts no timer and imports nothing", async () => {
    const folder = await folderWith({
      "index.ts": `let ran = 0; export default { late: () => { setTimeout(() => ran++, 0); return import("./x") }, ran: () => ran }`,
      "x.ts": "export {}",
    });
    const { exports, scope } = await evaluate(folder, "index.ts");
    await scope.dispose();
    const value = exports["default"] as { late(): Promise<unknown>; ran(): number };
    await expect(value.late()).rejects.toThrow(/was unloaded/);
    await new Promise((resolve) => setTimeout(resolve, 10));
    expect(value.ran()).toBe(0);
  });

  test("timers and continuations are attributed to the scope", async () => {
    const host = testHost();
    const seen: unknown[] = [];
    const folder = await folderWith({
      "index.ts": `import { probe } from "probe"; probe(); setTimeout(probe, 0); await null; probe()`,
    });
    const { scope } = await evaluate(folder, "index.ts", host, { probe: { probe: () => seen.push(host.current()) } });
    await new Promise((resolve) => setTimeout(resolve, 10));
    expect(seen).toEqual([scope, scope, scope]);
  });
});

describe("cache", () => {
  test("a second process finds the result on disk and starts no worker", async () => {
    const cache = await folderWith();
    const request = { filename: "/nowhere/a.ts", source: "export const a: number = 1", async: true };
    const one = newTransformer(cache);
    const first = await one.transform(request);
    // The load does not wait for the write to the cache; the end of the loader does.
    await one.stop();
    const noWorker = new URL("file:///nowhere/worker.mjs");
    const second = await newTransformer(cache, noWorker).transform(request);
    expect(second).toEqual(first);
  });

  test("after the end nothing is written and no worker is begun", async () => {
    const cache = await folderWith();
    const transformer = newTransformer(cache);
    const names = Array.from({ length: 20 }, (_, n) => `/nowhere/${n}.ts`);
    const ends = names.map((filename) => transformer.transform({ filename, source: "export default 1", async: true }));
    const settled = Promise.allSettled(ends);
    await ends[0];
    await transformer.stop();
    const files = () => readdir(join(cache, "modules"));
    const written = await files();
    expect(written.filter((name) => name.endsWith(".tmp"))).toEqual([]);
    expect(written).not.toEqual([]);
    await settled;
    await expect(transformer.transform({ filename: "/nowhere/late.ts", source: "1", async: true })).rejects.toThrow("stopped");
    expect(await files()).toEqual(written);
  });

  test("the same source under another name is another result", async () => {
    const transformer = newTransformer();
    const one = await transformer.transform({ filename: "/x/one.ts", source: "export default import.meta.url", async: true });
    const two = await transformer.transform({ filename: "/x/two.ts", source: "export default import.meta.url", async: true });
    expect(one.code).not.toBe(two.code);
  });
});
