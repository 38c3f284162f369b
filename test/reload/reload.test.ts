// extensions.md §5, the tests that need the whole daemon; the loader's own are in test/core/loader.
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Frame } from "../../protocol/frame.ts";
import { startProcess } from "../support/process.ts";
import { callTool, generation, resultOf, setup, tool, unitAt, until, useDaemons } from "./_support.ts";

const start = useDaemons();
const lists = (frame: Frame) => frame.type === "available_commands_update";

test("reload test 13: a reload between tool_call and tool_result leaves both hooks to one generation", async () => {
  const hooks = (version: string) =>
    setup(
      `scope.add(m.defineHook(m.toolObserve, () => { globalThis.log13 = ["before ${version}"] }), m.defineHook(m.toolFinished, (value) => ({ ...value, result: { content: [{ type: "text", text: globalThis.log13.concat("after ${version}").join() }] } })));`,
    );
  const slow = `import * as m from "mortise/extension";
export default m.defineTool({ name: "slow", description: "d", params: m.z.object({}), run: () => new Promise((done) => { globalThis.release13 = () => done("ok") }) });`;
  const daemon = await start({ files: { "extensions/hooks.ts": hooks("1"), "extensions/slow.ts": slow } });
  const ended = daemon.prompt("call slow {}");
  await daemon.next("tool_execution_start");
  await until("the tool runs", () => "release13" in globalThis);
  daemon.write("extensions/hooks.ts", hooks("2"));
  await generation(daemon, "extensions/hooks.ts", 2);
  (globalThis as unknown as { release13(): void }).release13();
  expect(resultOf(await ended)).toBe("before 1,after 1");
  const again = daemon.prompt("call slow {}");
  delete (globalThis as Record<string, unknown>)["release13"];
  await until("the tool runs again", () => "release13" in globalThis);
  (globalThis as unknown as { release13(): void }).release13();
  expect(resultOf(await again)).toBe("before 2,after 2");
});

test("reload test 14: a dialog that is open at a reload is cancelled with its default; the late answer is ignored", async () => {
  const asks = (version: string) =>
    setup(
      `scope.onLive(async () => { globalThis.log14.push("${version} " + await scope.ctx.ui.confirm({ title: "${version}", message: "m" })) });`,
    );
  (globalThis as Record<string, unknown>)["log14"] = [];
  const daemon = await start({ options: { mode: "rpc-ui" }, files: { "extensions/asks.ts": asks("one") } });
  const question = await daemon.next((frame) => frame["method"] === "confirm");
  daemon.write("extensions/asks.ts", asks("two"));
  const cancel = await daemon.next((frame) => frame["method"] === "cancel");
  expect(cancel["targetId"]).toBe(question["id"]);
  daemon.send({ type: "extension_ui_response", id: question["id"], confirmed: true });
  const second = await daemon.next((frame) => frame["method"] === "confirm", { after: daemon.frames.indexOf(question) + 1 });
  daemon.send({ type: "extension_ui_response", id: second["id"], confirmed: true });
  await until("both answers", () => ((globalThis as Record<string, unknown>)["log14"] as unknown[]).length === 2);
  expect((globalThis as Record<string, unknown>)["log14"]).toEqual(expect.arrayContaining(["one false", "two true"]));
});

test("reload test 15 and 16: an unmodified pi extension's interval stops, and what it captured fails contained", async () => {
  const pi = (version: string) => `import type { ExtensionAPI } from "@mariozechner/pi-coding-agent";
export default function (pi: ExtensionAPI) {
  pi.on("session_start", (_event, ctx) => {
    setInterval(() => { globalThis.ticks15.push("${version}"); ctx.ui.setStatus("e", "${version}"); }, 5);
    if ("${version}" === "1") globalThis.stale15 = () => pi.registerTool({ name: "x", description: "d", parameters: {}, execute: async () => ({ content: [] }) });
  });
}`;
  const log = globalThis as unknown as { ticks15: string[]; stale15(): void };
  log.ticks15 = [];
  const daemon = await start({ files: { "extensions/interval.ts": pi("1") } });
  await until("ticks", () => log.ticks15.includes("1"));
  daemon.write("extensions/interval.ts", pi("2"));
  await until("ticks of the new version", () => log.ticks15.includes("2"));
  log.ticks15.length = 0;
  await until("more of them", () => log.ticks15.length > 5);
  expect(new Set(log.ticks15)).toEqual(new Set(["2"]));
  expect(() => log.stale15()).toThrow(/this version of ".*interval\.ts" was unloaded/);
  expect(daemon.frames.filter((frame) => frame.type === "extension_error")).toEqual([]);
  await daemon.ask("get_state");
});

test("reload test 17: a unit that fails again and again is taken out, the daemon and its gates stay", {
  timeout: 60_000,
}, async () => {
  const daemon = startProcess({
    files: {
      "extensions/fails.ts": setup(
        'scope.add(m.defineHook(m.toolDecide, () => undefined)); let n = 0; const t = setInterval(() => { if (++n > 12) clearInterval(t); throw new Error("strike " + n) }, 2);',
      ),
    },
  });
  try {
    await daemon.next((frame) => frame.type === "extension_error" && frame["event"] === "quarantine");
    const after = daemon.frames.length;
    await daemon.request("prompt", { message: "call ls {}" });
    const end = await daemon.next("tool_execution_end", { after });
    expect(JSON.stringify(end)).toMatch(/was taken out of service/);
    await daemon.next("agent_end", { after });
    expect(await daemon.end()).toBe(0);
  } finally {
    await daemon.dispose();
  }
});

test("a version is judged by its own failures: not by its being taken out, nor by those of the one before", async () => {
  const failing = (mark: string, times: number) =>
    `for (let i = 0; i < ${times}; i++) setTimeout(() => { throw new Error("${mark}" + i); }, 1);`;
  const unit = (mark: string, more: string, times: number) =>
    `import * as m from "mortise/extension"; ${more}
export default m.defineExtension({ name: "e", contributes: [m.defineTool({ name: "t", description: "", params: m.z.object({}), async run() {
  ${mark === "c" ? "await globalThis.held17;" : ""} ${mark === "c" ? failing("late", 10) : ""} ${mark === "c" ? "await new Promise((r) => setTimeout(r, 5));" : ""}
  return "${mark}";
} })], setup() { ${failing(mark, times)} } });`;
  const world = globalThis as Record<string, unknown>;
  let release = () => {};
  world["held17"] = new Promise<void>((resolve) => {
    release = resolve;
  });
  const path = "extensions/judged.ts";
  const daemon = await start({ files: { [path]: unit("a", "", 10) } });
  const failed = (error: string) => daemon.next((frame) => frame.type === "extension_error" && frame["error"] === error);
  await daemon.next((frame) => frame.type === "extension_error" && frame["event"] === "quarantine");
  daemon.write(path, unit("b", "", 9));
  await failed("b8");
  expect(await callTool(daemon, "t")).toBe("b");
  daemon.write(path, unit("c", "", 0));
  await generation(daemon, path, 3);
  const answer = callTool(daemon, "t");
  await daemon.next("tool_execution_start");
  daemon.write(path, unit("d", "", 0));
  await generation(daemon, path, 4);
  release();
  await failed("late9");
  expect(await answer).toBe("c");
  expect(await callTool(daemon, "t")).toBe("d");
  expect(unitAt(daemon, path)).toMatchObject({ state: "active", generation: 4 });
  delete world["held17"];
});

test("reload test 22: an override with next() over a built-in keeps its chain over reload and removal", async () => {
  const over = (mark: string) => `import { overrideCommand } from "mortise/extension";
export default overrideCommand("get_last_assistant_text", { run: async (_ctx, _params, next) => ({ text: "${mark}" + (await next()).text }) });`;
  const daemon = await start({ files: { "extensions/over.ts": over("1:") } });
  await daemon.prompt("hello");
  const text = async () => (await daemon.ask("get_last_assistant_text"))["text"];
  expect(await text()).toBe("1:hello");
  daemon.write("extensions/over.ts", over("2:"));
  await generation(daemon, "extensions/over.ts", 2);
  expect(await text()).toBe("2:hello");
  daemon.write("extensions/another.ts", over("a:"));
  await until("both", async () => (await text()) === "a:2:hello");
  await daemon.ask("set_extension_enabled", { extensionId: "over", enabled: false });
  expect(await text()).toBe("a:hello");
  await daemon.ask("set_extension_enabled", { extensionId: "another", enabled: false });
  expect(await text()).toBe("hello");
});

test("reload test 24: a slash command that reloads its own unit completes under its id", async () => {
  const self = (version: string) =>
    `import * as m from "mortise/extension";
export default m.defineSlashCommand({ name: "again", description: "d", async run(ctx) { const r = await ctx.use(m.Extensions).reload("self"); ctx.output("${version} " + r[0].outcome); } });`;
  const daemon = await start({ files: { "extensions/self.ts": self("1") }, watch: false });
  daemon.write("extensions/self.ts", self("2"));
  const frames = await daemon.prompt("/again");
  expect(JSON.stringify(frames)).toContain("1 loaded");
  expect(frames.at(-1)).toMatchObject({ type: "prompt_result", agentInvoked: false });
  expect(JSON.stringify(await daemon.prompt("/again"))).toContain("2 loaded");
});

test("reload test 25: the model streams during a reload; unchanged schemas reach it as the same bytes", async () => {
  const requests =
    "scope.add(m.defineHook(m.providerRequest, ({ request }) => { globalThis.tools25.push(JSON.stringify(request.tools)) }));";
  const seen: string[] = [];
  (globalThis as Record<string, unknown>)["tools25"] = seen;
  const daemon = await start({ files: { "extensions/see.ts": setup(requests), "extensions/t.ts": tool("t25", "one") } });
  const ended = daemon.prompt(`call t25 {}\n${"many words ".repeat(2000)}`);
  await daemon.next("message_update");
  daemon.write("extensions/t.ts", tool("t25", "two"));
  await ended;
  await generation(daemon, "extensions/t.ts", 2);
  expect(await callTool(daemon, "t25")).toBe("two");
  expect(seen.length).toBeGreaterThan(2);
  expect(new Set(seen).size).toBe(1);
  expect(seen[0]).toContain('"t25"');
});

test("reload test 26: what the host contributed survives a reload of everything, and the other way round", {
  timeout: 60_000,
}, async () => {
  const daemon = await start({ files: { "extensions/t.ts": tool("t26", "mine") } });
  await daemon.ask("set_host_tools", {
    tools: [{ name: "hosted", description: "d", parameters: { type: "object", properties: {} } }],
  });
  await daemon.ask("set_host_uri_schemes", { schemes: [{ scheme: "db", description: "d" }] });
  await daemon.ask("reload_extensions");
  const names = (kind: "tool") => daemon.daemon.kernel.registry.list(kind).map((entry) => entry.name);
  expect(names("tool")).toEqual(expect.arrayContaining(["hosted", "t26"]));
  const ended = daemon.prompt("call hosted {}");
  const call = await daemon.next("host_tool_call");
  daemon.send({ type: "host_tool_result", id: call["id"], result: { content: [{ type: "text", text: "from the host" }] } });
  expect(resultOf(await ended)).toBe("from the host");
  await daemon.ask("set_host_tools", { tools: [] });
  expect(await callTool(daemon, "t26")).toBe("mine");
});

test("reload test 28: a session_shutdown that hangs holds the reload for no time and its end for 2 s", async () => {
  const pi = (version: string) =>
    `export default function (pi: any) { pi.on("session_shutdown", () => new Promise(() => {})); pi.registerTool({ name: "v28", description: "d", parameters: { type: "object", properties: {} }, execute: async () => ({ content: [{ type: "text", text: "${version}" }] }) }); }`;
  const daemon = await start({ files: { "extensions/hangs.ts": pi("1") } });
  daemon.write("extensions/hangs.ts", pi("2"));
  await generation(daemon, "extensions/hangs.ts", 2);
  expect(await callTool(daemon, "v28")).toBe("2");
  const began = Date.now();
  await daemon.daemon.close("ended");
  // Item 59: the budget is short and shared.
  expect(Date.now() - began).toBeLessThan(8000);
});

test("reload test 30: a unit is switched off and on live", async () => {
  const daemon = await start({ files: { "extensions/t.ts": tool("t30", "on") } });
  await daemon.ask("set_extension_enabled", { extensionId: "t", enabled: false });
  expect(await callTool(daemon, "t30")).toContain("not found");
  daemon.write("extensions/t.ts", tool("t30", "edited"));
  await new Promise((resolve) => setTimeout(resolve, 150));
  expect(unitAt(daemon, "extensions/t.ts")?.state).toBe("disabled");
  await daemon.ask("set_extension_enabled", { extensionId: "t", enabled: true });
  expect(await callTool(daemon, "t30")).toBe("edited");
});

test("reload test 31: a linked folder with its own dependencies, the host's packages are the host's", async () => {
  const daemon = await start();
  const store = join(daemon.home, "store/pkg");
  mkdirSync(join(store, "node_modules/dep"), { recursive: true });
  writeFileSync(join(store, "package.json"), JSON.stringify({ name: "pkg", mortise: "./main.ts" }));
  writeFileSync(join(store, "node_modules/dep/package.json"), JSON.stringify({ name: "dep", main: "index.js" }));
  writeFileSync(join(store, "node_modules/dep/index.js"), 'module.exports = "own dependency";');
  writeFileSync(
    join(store, "main.ts"),
    'import dep from "dep"; import { z as zod } from "zod"; import { defineTool, z } from "mortise/extension"; export default defineTool({ name: "t31", description: "d", params: z.object({}), run: () => dep + " " + (zod.object === z.object) });',
  );
  mkdirSync(join(daemon.home, "extensions"), { recursive: true });
  symlinkSync(store, join(daemon.home, "extensions/pkg"));
  await until("the tool", () => daemon.daemon.kernel.registry.get("tool", "t31") !== undefined);
  expect(await callTool(daemon, "t31")).toBe("own dependency true");
});

test("reload test 32: stdin closes in the middle of a reload", { timeout: 60_000 }, async () => {
  const slow = (version: string) =>
    setup(
      `await new Promise((done) => setTimeout(done, 400)); globalThis.x = "${version}"; scope.onLive(() => console.error("live ${version}"));`,
    );
  const daemon = startProcess({ files: { "extensions/slow.ts": slow("one") } });
  try {
    await daemon.next("available_commands_update");
    daemon.write("extensions/slow.ts", slow("two"));
    daemon.send({ id: "r", type: "reload_extensions", extensionId: "slow" });
    daemon.send({ id: "s", type: "get_state" });
    await daemon.next((frame) => frame["id"] === "s");
    expect(await daemon.end()).toBe(0);
    expect(daemon.frames.filter((frame) => frame["id"] === "r")).toHaveLength(1);
  } finally {
    await daemon.dispose();
  }
});

test("items 61 and 3: a tool added later is usable in the next model call; its slash command is announced once", async () => {
  const daemon = await start({
    files: {
      "extensions/late.ts": setup(
        'scope.add(m.defineTool({ name: "grow", description: "d", params: m.z.object({}), run: () => { scope.add(m.defineTool({ name: "grown", description: "d", params: m.z.object({}), run: () => "grown" })); return "ok" } }));',
      ),
    },
  });
  expect(await callTool(daemon, "grow")).toBe("ok");
  expect(await callTool(daemon, "grown")).toBe("grown");
  const before = daemon.frames.filter(lists).length;
  daemon.write(
    "extensions/slash.ts",
    'import { defineSlashCommand } from "mortise/extension"; export default defineSlashCommand({ name: "fresh", description: "d", run() {} });',
  );
  await daemon.next((frame) => lists(frame) && JSON.stringify(frame).includes('"fresh"'));
  expect(daemon.frames.filter(lists)).toHaveLength(before + 1);
});

test("item 60: a handler that throws is named and the next one runs; the host has the update before handlers finish", async () => {
  const daemon = await start({
    files: {
      "extensions/a.ts":
        'export default function (pi: any) { pi.on("message_update", async () => { await new Promise((r) => setTimeout(r, 300)); globalThis.end60 ??= Date.now(); }); pi.on("agent_end", () => { throw new Error("first") }); pi.on("agent_end", () => { globalThis.second60 = true }); }',
    },
  });
  const frames = await daemon.prompt("hello");
  expect(frames.some((frame) => frame.type === "message_update")).toBe(true);
  expect(globalThis).not.toHaveProperty("end60");
  await daemon.next((frame) => frame.type === "extension_error" && frame["error"] === "first");
  await until("the second handler", () => "second60" in globalThis);
});

test("item 63: a command of an extension hides no built-in name, alias or builtin:anything", async () => {
  const daemon = await start({
    files: {
      "extensions/a.ts":
        'import { defineSlashCommand as d } from "mortise/extension"; export default ["help", "plugins", "model:x"].map((name) => d({ name, description: "mine", run(ctx) { ctx.output("mine") } }));',
    },
  });
  for (const name of ["help", "plugins", "model:x"])
    expect(JSON.stringify(await daemon.prompt(`/${name}`))).not.toContain('"mine"');
});

test("item 64 and 65: the text of a failed tool is rewritten; a system prompt of one run does not leak into the next", async () => {
  const seen: string[] = [];
  (globalThis as Record<string, unknown>)["prompts65"] = seen;
  const daemon = await start({
    files: {
      "extensions/a.ts": setup(
        'let once = true; scope.add(m.defineHook(m.toolFinished, (v) => v.isError ? { ...v, result: { content: [{ type: "text", text: "rewritten" }] } } : undefined), m.defineHook(m.beforeAgentStart, (plan) => { if (!once) return; once = false; return { ...plan, systemPrompt: [...plan.systemPrompt, "ONLY THIS RUN"] } }), m.defineHook(m.providerRequest, ({ request }) => { globalThis.prompts65.push(request.systemPrompt.join()) }));',
      ),
    },
  });
  expect(await callTool(daemon, "read", { path: "/no/such/file" })).toBe("rewritten");
  await daemon.prompt("again");
  expect(seen[0]).toContain("ONLY THIS RUN");
  expect(seen.at(-1)).not.toContain("ONLY THIS RUN");
});

test("item 62 and 66: files are read anew, the old version's tools are gone, environment changes end with it", async () => {
  const daemon = await start({
    files: {
      "extensions/pkg/index.ts":
        'import { name } from "./name.mjs"; import { defineTool, z } from "mortise/extension"; process.env.ITEM_66 = name; export default defineTool({ name, description: "d", params: z.object({}), run: () => name });',
      "extensions/pkg/name.mjs": 'export const name = "old66";',
    },
  });
  expect(process.env["ITEM_66"]).toBe("old66");
  daemon.write("extensions/pkg/name.mjs", 'export const name = "new66";');
  await until("the new tool", () => daemon.daemon.kernel.registry.get("tool", "new66") !== undefined);
  expect(daemon.daemon.kernel.registry.get("tool", "old66")).toBeUndefined();
  await daemon.ask("set_extension_enabled", { extensionId: "pkg", enabled: false });
  await until("the environment is as it was", () => process.env["ITEM_66"] === undefined);
  daemon.write("commands/greet.md", "Say hello");
  await daemon.next((frame) => lists(frame) && JSON.stringify(frame).includes('"greet"'));
});
