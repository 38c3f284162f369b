// An extension in a process of its own, driven through the built daemon: what it contributes works as in process, and what would end
// the daemon ends only its process (issue 6: a synchronous loop, a native crash, memory that runs out).
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import type { Frame } from "../../protocol/frame.ts";
import { type DaemonProcess, type ProcessOptions, startProcess } from "../support/process.ts";

let daemon: DaemonProcess | undefined;
afterEach(async () => {
  await daemon?.dispose();
  daemon = undefined;
});

async function start(code: string, options: ProcessOptions & { config?: string } = {}): Promise<DaemonProcess> {
  const { config = "isolate: [iso]\nisolation: { memoryMb: 128 }\n", ...rest } = options;
  daemon = startProcess({ ...rest, files: { "extensions/iso.ts": code, "config.yml": config, ...rest.files } });
  await loaded(daemon);
  return daemon;
}

/** A busy machine may let a process follow after the start. */
async function loaded(d: DaemonProcess): Promise<void> {
  await d.next("available_commands_update", { timeoutMs: 20_000 });
  const states = async () => {
    const { extensions } = (await d.request("get_extensions"))["data"] as { extensions: { state: string }[] };
    return extensions.map(({ state }) => state);
  };
  await expect.poll(states, { timeout: 20_000, interval: 100 }).not.toContain("loading");
}

const imports = `import { execSync } from "node:child_process"; import { defineExtension, defineHook, definePromptSection, defineSetting, defineSlashCommand, defineTool, defineUriScheme, input, textResult, toolDecide, toolFinished, ToolError, z } from "mortise/extension";\n`;

const everything = `${imports}
  const Word = defineSetting({ name: "iso.word", schema: z.string(), default: "plain", summary: "x" });
  export default [
    Word,
    defineTool({ name: "iso", description: "does things", params: z.object({ what: z.string(), n: z.number().default(7) }),
      async run(ctx, { what, n }) {
        console.log("printed by the extension");
        process.stdout.write("written by the extension");
        if (what === "pid") return String(process.pid);
        if (what === "n") return String(n);
        if (what === "fail") throw new ToolError("told so", { details: { why: 3 } });
        if (what === "setting") return ctx.setting(Word);
        if (what === "cwd") return ctx.cwd + " " + ctx.conversation.cwd;
        if (what === "nested") return ctx.runTool("iso", { what: "n", n: 5 });
        if (what === "confirm") return String(await ctx.ui.confirm({ title: "t", message: "m" }));
        if (what === "messages") return String(ctx.conversation.messages);
        if (what === "hang") return new Promise((_, reject) => ctx.signal.addEventListener("abort", () => reject(new Error("stopped"))));
        if (what === "loop") for (;;);
        if (what === "abort" || what === "segv") { execSync("kill -" + what.toUpperCase().replace("ABORT", "ABRT") + " " + process.pid); return "?"; }
        if (what === "exit") { execSync("kill -9 " + process.pid); return "?"; }
        if (what === "memory") { const all = []; for (;;) all.push(new Array(100_000).fill({})); }
        if (what === "throw") { setTimeout(() => { throw new Error("thrown late"); }, 1); return "later"; }
        ctx.update(textResult("half"));
        return textResult("done", { d: 1 });
      } }),
    defineSlashCommand({ name: "iso", description: "says", async run(ctx, args) {
      if (args === "model") return { prompt: "said to the model" };
      const name = await ctx.ui.input({ title: "Who?" });
      ctx.output("Hello " + name + " " + args);
    } }),
    defineHook(toolDecide, (call) => call.args.command === "echo no" ? { block: true, reason: "not that" } : undefined),
    defineHook(toolDecide, (call) => call.args.command === "echo loop" ? (() => { for (;;); })() : undefined),
    defineHook(toolFinished, (finished) => finished.toolName === "ls" ? { ...finished, result: textResult("changed") } : undefined),
    defineHook(input, (value) => value.text === "swap" ? { ...value, text: "swapped" } : undefined),
    definePromptSection({ name: "iso section", order: 9, stable: false, render: (ctx) => "from isolation, " + ctx.setting(Word) }),
    defineUriScheme({ name: "iso", description: "x", read: async (url) => ({ content: "content of " + url, contentType: "text/plain", immutable: false }) }),
  ];`;

async function run(d: DaemonProcess, message: string): Promise<Frame[]> {
  const after = d.frames.length;
  const response = await d.request("prompt", { message });
  expect(response).toMatchObject({ success: true });
  await d.next("agent_end", { after, timeoutMs: 25_000 });
  return d.frames.slice(after);
}

async function call(d: DaemonProcess, what: string, more = {}): Promise<{ text: string; isError: boolean; frames: Frame[] }> {
  const frames = await run(d, `call iso ${JSON.stringify({ what, ...more })}`);
  const end = frames.find((frame) => frame.type === "tool_execution_end");
  const result = end?.["result"] as { content: { text: string }[] };
  return { text: result.content.map(({ text }) => text).join(""), isError: end?.["isError"] === true, frames };
}

const errorsOf = (d: DaemonProcess) =>
  d.frames.filter((frame) => frame.type === "extension_error").map((frame) => String(frame["error"]));

describe("an isolated extension", () => {
  it("contributes as it does in process", { timeout: 60_000 }, async () => {
    const d = await start(everything, { mode: "rpc-ui" });
    expect(errorsOf(d)).toEqual([]);
    expect(Number((await call(d, "pid")).text)).not.toBe(d.child.pid);
    expect((await call(d, "n")).text).toBe("7");
    expect((await call(d, "nested")).text).toBe("5");
    expect((await call(d, "cwd")).text).toBe(`${d.cwd} ${d.cwd}`);
    expect(await call(d, "fail")).toMatchObject({ text: "told so", isError: true });
    expect((await call(d, "x", { n: "many" })).text).toContain('Invalid arguments for tool "iso"');
    expect((await call(d, "messages")).text).toContain("ctx.conversation.messages is not available in an isolated extension");
    const { frames } = await call(d, "update");
    expect(frames.find((frame) => frame.type === "tool_execution_update")).toMatchObject({
      partialResult: { content: [{ text: "half" }] },
    });
    expect(frames.find((frame) => frame.type === "tool_execution_end")).toMatchObject({ result: { details: { d: 1 } } });
    // Hooks, a prompt section, a scheme, a setting that changes.
    const blocked = await run(d, 'call bash {"command": "echo no"}');
    expect(JSON.stringify(blocked.find((frame) => frame.type === "tool_execution_end"))).toContain("not that");
    const changed = await run(d, 'call ls {"path": "."}');
    expect(changed.find((frame) => frame.type === "tool_execution_end")).toMatchObject({
      result: { content: [{ text: "changed" }] },
    });
    expect(JSON.stringify(await run(d, "swap"))).toContain("swapped");
    expect(JSON.stringify(await run(d, 'call read {"path": "iso://a"}'))).toContain("content of iso://a");
    expect(JSON.stringify(await d.request("get_state"))).toContain("from isolation, plain");
    // Nothing it prints reaches the protocol.
    expect(d.stdout()).not.toMatch(/^printed|written by/m);
    expect(await d.end()).toBe(0);
  });

  it("asks the person, and is told of an abort", { timeout: 60_000 }, async () => {
    const d = await start(everything, { mode: "rpc-ui" });
    const answered = call(d, "confirm");
    const dialog = await d.next((frame) => frame["method"] === "confirm");
    d.send({ type: "extension_ui_response", id: dialog["id"], confirmed: true });
    expect((await answered).text).toBe("true");
    d.send({ id: "s", type: "prompt", message: "/iso now" });
    const asked = await d.next((frame) => frame["method"] === "input");
    d.send({ type: "extension_ui_response", id: asked["id"], value: "Ada" });
    expect(await d.next("command_output")).toMatchObject({ text: "Hello Ada now" });
    expect(JSON.stringify(await run(d, "/iso model"))).toContain("said to the model");
    const hanging = call(d, "hang");
    await d.next("tool_execution_start", { after: d.frames.length });
    await d.request("abort");
    expect((await hanging).isError).toBe(true);
    expect((await call(d, "n")).text).toBe("7");
    expect(errorsOf(d)).toEqual([]);
  });

  it("an endless loop ends only its process, which comes back", { timeout: 60_000 }, async () => {
    // Short, so that the test is; on a busy machine it must not be what ends the others.
    const d = await start(everything, { config: "isolate: [iso]\nisolation: { stallMs: 1000, memoryMb: 128 }\n" });
    const first = (await call(d, "pid")).text;
    const looping = call(d, "loop");
    await d.next("tool_execution_start", { after: d.frames.length });
    // The daemon answers meanwhile.
    const before = d.frames.length;
    expect(await d.request("get_state")).toMatchObject({ success: true });
    expect(d.frames.slice(before).some((frame) => frame.type === "tool_execution_end")).toBe(false);
    expect(await looping).toMatchObject({ isError: true, text: expect.stringContaining("did not answer for 1000 ms") });
    expect(errorsOf(d)[0]).toContain("endless loop");
    expect((await call(d, "pid")).text).not.toBe(first);
    // A gate in a loop blocks.
    const gated = await run(d, 'call bash {"command": "echo loop"}');
    expect(gated.find((frame) => frame.type === "tool_execution_end")).toMatchObject({ isError: true });
    expect((await call(d, "n")).text).toBe("7");
  });

  it("a crash, exhausted memory and a late throw do not reach the daemon", { timeout: 90_000 }, async () => {
    const d = await start(everything, { config: "isolate: [is*]\nisolation: { memoryMb: 128 }\n" });
    expect(await call(d, "exit")).toMatchObject({ isError: true, text: expect.stringContaining("ended by SIGKILL") });
    expect((await call(d, "n")).text).toBe("7");
    // What a native addon that crashes does.
    expect(await call(d, "abort")).toMatchObject({ isError: true, text: expect.stringContaining("ended by SIGABRT") });
    expect(await call(d, "segv")).toMatchObject({ isError: true, text: expect.stringContaining("ended by SIGSEGV") });
    expect((await call(d, "n")).text).toBe("7");
    expect(await call(d, "memory")).toMatchObject({ isError: true, text: expect.stringMatching(/memory ran out/) });
    expect((await call(d, "n")).text).toBe("7");
    await call(d, "throw");
    await d.next((frame) => frame.type === "extension_error" && frame["error"] === "thrown late");
    expect((await call(d, "n")).text).toBe("7");
    expect(await d.end()).toBe(0);
  });

  it("an endless loop, a crash or exhausted memory while it loads is a failed load", { timeout: 90_000 }, async () => {
    const d = await start("for (;;);", {
      config: "isolate: ['iso*']\nisolation: { stallMs: 1000, memoryMb: 64 }\n",
      files: {
        "extensions/iso-crash.ts": 'import { execSync } from "node:child_process"; execSync("kill -SEGV " + process.pid);',
        "extensions/iso-memory.ts": "const all = []; for (;;) all.push(new Array(100_000).fill({}));",
      },
    });
    const failed = (name: string) =>
      d.frames.find((frame) => frame.type === "extension_error" && String(frame["extensionPath"]).endsWith(`${name}.ts`));
    for (const name of ["iso", "iso-crash", "iso-memory"]) {
      if (failed(name) === undefined) await d.next(() => failed(name) !== undefined, { timeoutMs: 30_000 });
      expect(await d.request("get_state")).toMatchObject({ success: true });
    }
    await run(d, "hi");
    await expect.poll(() => childrenOf(d.child.pid ?? 0), { timeout: 15_000 }).toEqual([]);
    expect(await d.end()).toBe(0);
  });

  it("is the setting of docs/extensions.md with its example", { timeout: 60_000 }, async () => {
    const example = (path: string) => readFileSync(fileURLToPath(new URL(`../examples/${path}`, import.meta.url)), "utf8");
    daemon = startProcess({
      files: { "extensions/hello.ts": example("hello.ts"), "config.yml": example("config/isolation.yml") },
    });
    await loaded(daemon);
    expect(childrenOf(daemon.child.pid ?? 0)).toHaveLength(1);
    const frames = await run(daemon, 'call hello {"name": "Ada"}');
    expect(JSON.stringify(frames)).toContain("Hello, Ada!");
  });

  it("reloads like any other; a broken save changes nothing", { timeout: 60_000 }, async () => {
    const tool = (answer: string) => `${imports} import { word } from "./_word.ts";
      export default defineTool({ name: "iso", description: "", params: z.object({ what: z.string() }), run: () => "${answer} " + word });`;
    const d = await start(tool("one"), { files: { "extensions/_word.ts": 'export const word = "a";' } });
    expect(errorsOf(d)).toEqual([]);
    expect((await call(d, "")).text, d.stderr()).toBe("one a");
    const failed = d.next("extension_error", { after: d.frames.length });
    d.write("extensions/iso.ts", "const a = 1;\nexport default (;");
    const error = await failed;
    // As in process: told once, with its place and nothing of how it came about.
    expect(error).toMatchObject({ event: "load", phase: "load", generation: 2, error: expect.stringContaining("iso.ts:2:") });
    expect(String(error["stack"]).split("\n").slice(1).join()).toMatch(/^\s+at \S+\/iso\.ts:2:\d+$/);
    expect((await call(d, "")).text).toBe("one a");
    const crashed = d.frames.length;
    d.write("extensions/iso.ts", 'import { execSync } from "node:child_process"; execSync("kill -SEGV " + process.pid);');
    await d.next("extension_error", { after: crashed });
    expect((await call(d, "")).text).toBe("one a");
    // A helper that is not there yet, then one that is wrong: each is told once, and mending it is enough.
    const more = d.frames.length;
    d.write("extensions/iso.ts", tool("two").replace("_word", "_words"));
    await d.next("extension_error", { after: more });
    d.write("extensions/_words.ts", "export const word = ;");
    await d.next((frame) => frame.type === "extension_error" && String(frame["error"]).includes("_words.ts:1"), { after: more });
    d.write("extensions/_words.ts", 'export const word = "c";');
    await expect.poll(async () => (await call(d, "")).text, { timeout: 15_000, interval: 200 }).toBe("two c");
    d.write("extensions/iso.ts", tool("two"));
    await expect.poll(async () => (await call(d, "")).text, { timeout: 15_000, interval: 200 }).toBe("two a");
    d.write("extensions/_word.ts", 'export const word = "b";');
    await expect.poll(async () => (await call(d, "")).text, { timeout: 15_000, interval: 200 }).toBe("two b");
    const listed = await d.request("get_extensions");
    const { extensions } = listed["data"] as { extensions: { name: string; files: string[]; state: string }[] };
    expect(extensions.find(({ name }) => name === "iso")).toMatchObject({
      state: "active",
      files: expect.arrayContaining([join(d.home, "extensions/_word.ts")]),
    });
    // Nothing was tried over and over.
    expect(errorsOf(d)).toHaveLength(4);
    // Only the newest process is left.
    await expect.poll(() => childrenOf(d.child.pid ?? 0).length, { timeout: 10_000 }).toBe(1);
  });

  it("refuses at load what cannot be isolated, and says so", { timeout: 60_000 }, async () => {
    const service = `import { createToken, defineService } from "mortise/extension";
      export default defineService(createToken("x"), { create: () => ({}) });`;
    const d = await start(service, {
      files: { "extensions/iso-pi.ts": "export default function (pi) {}" },
      config: "isolate: ['iso*']\n",
    });
    const told = (text: string) =>
      d.next((frame) => frame.type === "extension_error" && String(frame["error"]).includes(text), { after: 0 });
    await told('The service "x" cannot be contributed from isolation, only tool, slash command, hook');
    await told("written for pi, oh-my-pi or veyyon cannot be isolated");
    await expect.poll(() => childrenOf(d.child.pid ?? 0)).toEqual([]);
  });

  it("a manifest isolates its own package; the process ends with a daemon that is killed", { timeout: 60_000 }, async () => {
    const d = await start("", {
      config: "",
      files: {
        "extensions/iso.ts": `${imports} export default defineSlashCommand({ name: "x", description: "", run() {} });`,
        "extensions/pack/package.json": JSON.stringify({ mortise: { extensions: "./index.ts", isolate: true } }),
        "extensions/pack/index.ts": everything,
      },
    });
    const pid = Number((await call(d, "pid")).text);
    expect(childrenOf(d.child.pid ?? 0)).toEqual([pid]);
    void call(d, "loop").catch(() => {});
    await d.next("tool_execution_start", { after: d.frames.length });
    d.child.kill("SIGKILL");
    await expect.poll(() => isAlive(pid), { timeout: 10_000 }).toBe(false);
  });
});

function childrenOf(pid: number): number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

function isAlive(pid: number): boolean {
  try {
    // A killed process whose parent is gone may be a zombie for a moment.
    return !readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z ");
  } catch {
    return false;
  }
}
