// The reload tests of extensions.md §5 that a person sees, on the built daemon: files are saved, frames go in and out.
import { mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import type { Frame } from "../../protocol/frame.ts";
import { type DaemonProcess, type ProcessOptions, startProcess } from "../support/process.ts";
import { resultOf, tool, until } from "./_support.ts";

const LIMIT = { timeoutMs: 15_000 };
let daemon: DaemonProcess | undefined;
afterEach(async () => {
  await daemon?.dispose();
  daemon = undefined;
});

async function start(files: Record<string, string>, options: ProcessOptions = {}): Promise<DaemonProcess> {
  daemon = startProcess({ ...options, files });
  await daemon.next("available_commands_update", LIMIT);
  // Watches are set a moment after the start: a second save that is seen shows that they are.
  const probe = `extensions/zz-probe.ts`;
  let version = 0;
  await until("edits are followed", async () => {
    daemon?.write(probe, tool("probe", String(++version)));
    await new Promise((resolve) => setTimeout(resolve, 100));
    return (await callTool("probe")) === String(version) && version > 1;
  });
  return daemon;
}

async function prompt(message: string): Promise<Frame[]> {
  if (daemon === undefined) throw new Error("No daemon runs");
  const after = daemon.frames.length;
  expect(await daemon.request("prompt", { message })).toMatchObject({ success: true });
  await daemon.next("agent_end", { after, ...LIMIT });
  return daemon.frames.slice(after);
}

const callTool = async (name: string) => resultOf(await prompt(`call ${name} {}`));
const answers = (name: string, text: string) => until(`${name} answers ${text}`, async () => (await callTool(name)) === text);
const errorsOf = (d: DaemonProcess, after = 0) => d.frames.slice(after).filter((frame) => frame.type === "extension_error");

test("reload tests 1 and 2: an edit of the entry, a .ts, .js, .mjs or .json answers next, in the same process", {
  timeout: 60_000,
}, async () => {
  const helpers = {
    "a.ts": "export const a: number = 0",
    "b.js": "export const b = 0",
    "c.mjs": "export const c = 0",
    "d.json": "0",
  };
  const entry = (version: number) =>
    `import { a } from "./a.ts"; import { b } from "./b.js"; import { c } from "./c.mjs"; import d from "./d.json"; import { defineTool, z } from "mortise/extension";
    export default defineTool({ name: "parts", description: "", params: z.object({}), run: () => [${version}, a, b, c, d].join("") });`;
  const files = Object.entries(helpers).map(([name, text]) => [`extensions/parts/${name}`, text]);
  const d = await start({ ...Object.fromEntries(files), "extensions/parts/index.ts": entry(0) });
  const { pid } = d.child;
  expect(await callTool("parts")).toBe("00000");
  d.write("extensions/parts/index.ts", entry(1));
  await answers("parts", "10000");
  for (const [index, [name, text]] of Object.entries(helpers).entries()) {
    d.write(`extensions/parts/${name}`, text.replace("0", "1"));
    await answers("parts", `${"1".repeat(index + 2)}${"0".repeat(3 - index)}`);
  }
  expect([d.child.pid, d.child.exitCode]).toEqual([pid, null]);
});

test("reload tests 3 and 4: a new file is announced once and taken back whole; what it hid answers in the same step", {
  timeout: 60_000,
}, async () => {
  const d = await start({});
  const after = d.frames.length;
  const both = `import * as m from "mortise/extension";
    export default [
      m.defineTool({ name: "ls", description: "d", params: m.z.object({}), run: () => "mine" }),
      m.defineSlashCommand({ name: "mine", description: "d", run: (ctx) => ctx.output("said") }),
    ];`;
  const path = d.write("extensions/mine.ts", both);
  await answers("ls", "mine");
  const updates = (from: number) => d.frames.slice(from).filter((frame) => frame.type === "available_commands_update");
  expect(updates(after)).toHaveLength(1);
  expect(JSON.stringify(updates(after))).toContain('"mine"');
  const removed = d.frames.length;
  rmSync(path);
  // Asked all the time: it is the one or the other, never an unknown tool.
  const seen: string[] = [];
  await until("the built-in answers", async () => {
    seen.push(await callTool("ls"));
    return seen.at(-1) !== "mine";
  });
  expect(seen.filter((text) => /unknown|not found/i.test(text))).toEqual([]);
  await until("it is announced", () => updates(removed).length > 0);
  expect(updates(removed)).toHaveLength(1);
  expect(JSON.stringify(updates(removed))).not.toContain('"mine"');
});

test("reload test 5: a folder replaced as a whole, by rename and by removal, answers all the time", {
  timeout: 60_000,
}, async () => {
  const d = await start({ "extensions/unit/index.ts": tool("unit", "0") });
  const folder = join(d.home, "extensions/unit");
  const seen = new Set<string>();
  const replaced = async (text: string, replace: () => void) => {
    replace();
    await until(text, async () => {
      seen.add(await callTool("unit"));
      return seen.has(text);
    });
  };
  for (const round of [1, 3, 5]) {
    await replaced(String(round), () => {
      d.write(`extensions/.next/index.ts`, tool("unit", String(round)));
      renameSync(folder, join(d.home, "extensions/.old"));
      renameSync(join(d.home, "extensions/.next"), folder);
      rmSync(join(d.home, "extensions/.old"), { recursive: true });
    });
    await replaced(String(round + 1), () => {
      rmSync(folder, { recursive: true });
      mkdirSync(folder);
      d.write("extensions/unit/index.ts", tool("unit", String(round + 1)));
    });
  }
  expect([...seen].sort()).toEqual(["0", "1", "2", "3", "4", "5", "6"].filter((text) => seen.has(text)));
  expect(errorsOf(d)).toEqual([]);
});

test("reload tests 6, 7 and 9: what does not load or set up changes nothing and names its place; a fix in a new file recovers", {
  timeout: 60_000,
}, async () => {
  const d = await start({ "extensions/x.ts": tool("x", "good") });
  const fails = async (text: string): Promise<Frame> => {
    const after = d.frames.length;
    d.write("extensions/x.ts", text);
    return d.next("extension_error", { after, ...LIMIT });
  };
  const syntax = await fails(`${tool("x", "bad")}\nexport const = 1;`);
  expect(syntax).toMatchObject({ extensionPath: join(d.home, "extensions/x.ts"), event: "load" });
  expect(syntax["error"]).toMatch(/x\.ts:\d+:\d+/);
  expect(await callTool("x")).toBe("good");
  const thrown = await fails(
    `import * as m from "mortise/extension"; export default m.defineExtension({ name: "x", async setup(s) { s.add(m.defineTool({ name: "half", description: "", params: m.z.object({}), run: () => "" })); await null; throw new Error("in set-up"); } });`,
  );
  expect(thrown).toMatchObject({ event: "setup", error: expect.stringContaining("in set-up") });
  expect(await callTool("x")).toBe("good");
  expect(await callTool("half")).toMatch(/half/);
  await fails(tool("x", "fixed", 'import "./_new.ts";'));
  expect(await callTool("x")).toBe("good");
  d.write("extensions/_new.ts", "export {};");
  await answers("x", "fixed");
});

test("reload test 10: a call in flight ends on its version while a second one runs on the new", { timeout: 60_000 }, async () => {
  const waits = (version: string) => `import * as m from "mortise/extension"; import { existsSync } from "node:fs";
    export default m.defineTool({ name: "waits", description: "", params: m.z.object({ for: m.z.string().optional() }), async run(_ctx, args) {
      while (args.for !== undefined && !existsSync(args.for)) await new Promise((resolve) => setTimeout(resolve, 5));
      return "${version}";
    } });`;
  const d = await start({ "extensions/waits.ts": waits("old") });
  const flag = join(d.home, "go");
  const after = d.frames.length;
  await d.request("prompt", { message: `call waits ${JSON.stringify({ for: flag })}` });
  await d.next("tool_execution_start", { after, ...LIMIT });
  d.write("extensions/waits.ts", waits("new"));
  interface Listed {
    name: string;
    generation: number;
    draining?: number;
  }
  const listed = async () => {
    const { data } = await d.request("get_extensions");
    return (data as { extensions: Listed[] }).extensions.find(({ name }) => name === "waits");
  };
  await until("the new version is live", async () => (await listed())?.generation === 2);
  expect(await listed()).toMatchObject({ draining: 1 });
  d.write("go", "");
  await d.next("agent_end", { after, ...LIMIT });
  expect(resultOf(d.frames.slice(after))).toBe("old");
  expect(await callTool("waits")).toBe("new");
  await until("the old version is gone", async () => (await listed())?.draining === undefined);
});

test("reload test 21: two extensions with one tool: the first answers, the other is named; config.yml decides differently live", {
  timeout: 60_000,
}, async () => {
  const d = await start({ "extensions/a.ts": tool("same", "of a"), "extensions/b.ts": tool("same", "of b") });
  expect(await callTool("same")).toBe("of a");
  expect(errorsOf(d)).toEqual([]);
  const { data } = await d.request("get_extensions");
  const { extensions } = data as { extensions: { name: string; shadowedBy: unknown[] }[] };
  expect(extensions.find(({ name }) => name === "b")?.shadowedBy).toEqual([
    { key: "tool:same", owner: join(d.home, "extensions/a.ts") },
  ]);
  d.write("config.yml", "prefer:\n  tool:same: b\nalias:\n  tool:same a: other\n");
  await answers("same", "of b");
  expect(await callTool("other")).toBe("of a");
  d.write("config.yml", "suppress: [b]\n");
  await answers("same", "of a");
  expect(await callTool("other")).toMatch(/other/);
});

test("reload test 23: who requires a service waits while it is away and is back with it", { timeout: 60_000 }, async () => {
  const token = 'm.createToken("words")';
  const d = await start({
    "extensions/reader.ts": `import * as m from "mortise/extension";
      export default [m.defineService(m.createToken("reader"), { requires: [${token}], create: () => ({}) }),
        m.defineTool({ name: "reader", description: "", params: m.z.object({}), run: (ctx) => ctx.use(${token}).word })];`,
    "extensions/words.ts": `import * as m from "mortise/extension"; export default m.defineService(${token}, { create: () => ({ word: "one" }) });`,
  });
  const state = async (name: string) => {
    const { data } = await d.request("get_extensions");
    return (data as { extensions: { name: string; state: string }[] }).extensions.find((unit) => unit.name === name)?.state;
  };
  expect(await callTool("reader")).toBe("one");
  expect(await d.request("set_extension_enabled", { extensionId: "words", enabled: false })).toMatchObject({ success: true });
  expect(await state("reader")).toBe("waiting");
  expect(await callTool("reader")).toMatch(/reader/);
  expect(await d.request("set_extension_enabled", { extensionId: "words", enabled: true })).toMatchObject({ success: true });
  await answers("reader", "one");
  expect(await state("reader")).toBe("active");
  expect(errorsOf(d)).toEqual([]);
});
