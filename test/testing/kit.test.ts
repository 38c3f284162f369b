// What "mortise/testing" gives to authors: helpers for tools and commands, reload, the scripted model service, the leak check.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { calls, checkLeaks, says, scriptedProvider, startDaemon, type TestDaemon } from "mortise/testing";
import { afterEach, beforeAll, describe, expect, it } from "vitest";

let daemon: TestDaemon | undefined;
async function start(...args: Parameters<typeof startDaemon>): Promise<TestDaemon> {
  daemon = await startDaemon(...args);
  await daemon.daemon.loader.settled();
  return daemon;
}
afterEach(async () => {
  await daemon?.stop();
  daemon = undefined;
});

const tool = (answer: string) => `import { defineTool, ToolError, textResult, z } from "mortise/extension";
  export default defineTool({ name: "t", description: "", params: z.object({ fail: z.boolean().optional() }),
    run(ctx, { fail }) {
      if (fail) throw new ToolError("no way", { details: { why: 1 } });
      ctx.update(textResult("half")); 
      return textResult("${answer}", { n: 2 });
    } });`;

describe("callTool", () => {
  it("gives text, details, progress and errors", async () => {
    const d = await start({ files: { "extensions/t.ts": tool("one") } });
    expect(await d.callTool("t")).toEqual({ text: "one", isError: false, details: { n: 2 }, updates: ["half"] });
    expect(await d.callTool("t", { fail: true })).toMatchObject({ text: "no way", isError: true, details: { why: 1 } });
  });
});

describe("reload", () => {
  it("loads one extension by name or id, or all, and says what failed", async () => {
    const d = await start({ watch: false, files: { "extensions/t.ts": tool("one") } });
    const path = d.write("extensions/t.ts", tool("two"));
    await d.reload("t");
    expect((await d.callTool("t")).text).toBe("two");
    d.write("extensions/t.ts", tool("three"));
    await d.reload(path);
    expect((await d.callTool("t")).text).toBe("three");
    d.write("extensions/new.ts", tool("four").replace('"t"', '"u"'));
    await d.reload();
    await d.daemon.loader.settled();
    expect((await d.callTool("u")).text).toBe("four");
    d.write("extensions/t.ts", "export default (");
    await expect(d.reload("t")).rejects.toThrow(/t\.ts" was not reloaded: /);
    expect((await d.callTool("t")).text).toBe("three");
    await expect(d.reload("nobody")).rejects.toThrow('No extension is called "nobody": new, t');
  });
});

describe("scriptedProvider", () => {
  it("plays replies and keeps what it was asked", async () => {
    const model = scriptedProvider(calls({ id: "c1", name: "t" }), says("It said ", "one"));
    const d = await start({
      options: { model: "scripted/scripted" },
      extensions: { model: [[model.definition]] },
      files: { "extensions/t.ts": tool("one") },
    });
    const frames = await d.prompt("go");
    expect(frames.at(-1)).toMatchObject({ type: "agent_end" });
    expect(await d.ask("get_last_assistant_text")).toEqual({ text: "It said one" });
    expect(model.requests.map((request) => request.messages.at(-1)?.role)).toEqual(["user", "toolResult"]);
    expect(model.refused).toEqual([]);
  });
});

describe("checkLeaks", () => {
  beforeAll(() => {
    setFlagsFromString("--expose-gc");
    globalThis.gc ??= runInNewContext("gc") as NodeJS.GCFunction;
  });
  const unit = (body: string, setup = "") => ({
    "extensions/e.ts": `import { createServer } from "node:net"; import nodeProcess from "node:process"; import { defineExtension, defineTool, z } from "mortise/extension";
      const big = Array.from({ length: 5000 }, (_, n) => ({ n }));
      export default defineExtension({ name: "e", contributes: [defineTool({ name: "e", description: "", params: z.object({}), run: () => String(big.length) })],
        async setup(scope) { ${body} } }); ${setup}`,
  });
  const reloads = process.env["MORTISE_SOAK"] === undefined ? 15 : 200;

  it("passes what ends with its version: timers, listeners, servers that are owned", async () => {
    const d = await start({
      watch: false,
      files: unit(`setInterval(() => big, 1000); process.on("SIGUSR2", () => big);
        const server = createServer(); await new Promise((done) => server.listen(0, "127.0.0.1", done));
        scope.own(() => new Promise((done) => server.close(() => done())));`),
    });
    const used: number[] = [];
    const report = await checkLeaks(d, "e", {
      reloads,
      use: async (each, n) => used.push(n + (await each.callTool("e")).text.length),
    });
    expect(report.undisposed).toEqual([]);
    expect(report.counts["contributions"]?.[0]).toBeGreaterThan(100);
    expect(report.counts["owned effects"]).toEqual([3, 3]);
    expect(report.bytesPerReload).toBeTypeOf("number");
    expect(used.length).toBeGreaterThanOrEqual(reloads + 3);
  });

  it("finds a handle that nobody owns", async () => {
    const d = await start({
      watch: false,
      files: unit(`const server = createServer(); await new Promise((done) => server.listen(0, "127.0.0.1", done));
        (globalThis.left ??= []).push(server);`),
    });
    await expect(checkLeaks(d, "e", { reloads: 4 })).rejects.toThrow(/"e" leaks over 4 reloads: .*TCPServerWrap/);
    await closeLeft();
  });

  it("finds kept memory", async () => {
    const d = await start({
      watch: false,
      files: unit(`(globalThis.left ??= []).push(Array.from({ length: 20_000 }, (_, n) => ({ n })));`),
    });
    await expect(checkLeaks(d, "e", { reloads: 6 })).rejects.toThrow(/bytes kept a reload, at most 65536/);
    await closeLeft();
  });

  it("says when a reload fails", async () => {
    const d = await start({ watch: false, files: unit("") });
    d.write("extensions/e.ts", "throw new Error('broken')");
    await expect(checkLeaks(d, "e", { reloads: 2 })).rejects.toThrow("broken");
  });
});

async function closeLeft(): Promise<void> {
  const world = globalThis as { left?: { close?(done: () => void): void }[] };
  for (const each of world.left ?? []) await new Promise<void>((done) => (each.close === undefined ? done() : each.close(done)));
  delete world.left;
}
