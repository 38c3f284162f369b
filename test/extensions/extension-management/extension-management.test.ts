// get_extensions, reload_extensions and set_extension_enabled over real files in a whole daemon (extensions.md F12).
import { afterEach, expect, test } from "vitest";
import { startDaemon, type TestDaemon } from "../../../core/testing.ts";

let daemon: TestDaemon | undefined;
afterEach(async () => {
  await daemon?.stop();
  daemon = undefined;
});

type Unit = Record<string, unknown> & { id: string; name: string; contributes: string[]; state: string; generation: number };

async function unit(name: string): Promise<Unit> {
  if (daemon === undefined) throw new Error("No daemon");
  const { extensions } = (await daemon.ask("get_extensions")) as { extensions: Unit[] };
  const found = extensions.find((each) => each.name === name);
  if (found === undefined) throw new Error(`${name} is not among ${extensions.map((each) => each.name).join(", ")}`);
  return found;
}

const gate = (answer: string) => `
import { defineExtension, defineHook, defineTool, toolDecide, z } from "mortise/extension";
export default [
  defineTool({ name: "ls", description: "d", params: z.object({}), run: () => "${answer}" }),
  defineTool({ name: "ver", description: "d", params: z.object({}), run: () => "${answer}" }),
  defineHook(toolDecide, ({ toolName }) => { if (toolName === "find") throw new Error("gate ${answer}"); }),
];`;

test("lists what every unit is, has registered, hides, took and failed at", async () => {
  daemon = await startDaemon({
    files: {
      "extensions/one.ts": gate("one"),
      "extensions/two.ts": gate("two"),
      "extensions/broken.ts": "export default (",
    },
  });
  await daemon.prompt('call ver {}\ncall find {"pattern": "*"}');
  const one = await unit("one");
  expect(one).toMatchObject({
    origin: "user",
    state: "active",
    generation: 1,
    path: `${daemon.home}/extensions/one.ts`,
    files: [`${daemon.home}/extensions/one.ts`],
    contributes: ["tool:ls", "tool:ver", "hook:toolDecide"],
    errors: 1,
  });
  // `ls` hides the built-in one and the one of the unit found later.
  expect(one["shadows"]).toEqual(
    expect.arrayContaining([
      { key: "tool:ls", owner: "builtin:tool/ls" },
      { key: "tool:ls", owner: `${daemon.home}/extensions/two.ts` },
      { key: "tool:ver", owner: `${daemon.home}/extensions/two.ts` },
    ]),
  );
  expect((await unit("two"))["shadowedBy"]).toEqual([
    { key: "tool:ls", owner: one.id },
    { key: "tool:ver", owner: one.id },
  ]);
  const timings = one["timings"] as Record<string, number>;
  expect(Object.keys(timings).sort()).toEqual(["evaluate", "resolve", "setup", "swap", "transpile"]);
  expect(timings["evaluate"]).toBeGreaterThan(0);
  const handlers = one["handlers"] as { calls: number; p95Ms: number };
  expect(handlers.calls).toBe(2);
  expect(handlers.p95Ms).toBeGreaterThanOrEqual(0);
  expect(await unit("broken")).toMatchObject({ state: "failed", generation: 0, contributes: [], errors: 1 });
  expect(String((await unit("broken"))["error"])).toContain("broken.ts:1:");
  expect(await unit("models")).toMatchObject({ origin: "builtin", state: "active", id: "builtin:models" });
});

test("reloads one by name, all without, keeps the version before when it fails, and refuses unknown ones", async () => {
  daemon = await startDaemon({ files: { "extensions/one.ts": gate("one") }, watch: false });
  daemon.write("extensions/one.ts", gate("uno"));
  expect(await daemon.ask("reload_extensions", { extensionId: "one" })).toMatchObject({
    reports: [{ id: `${daemon.home}/extensions/one.ts`, outcome: "loaded" }],
  });
  expect((await unit("one")).generation).toBe(2);
  daemon.write("extensions/one.ts", "export default (");
  const failed = (await daemon.ask("reload_extensions", { extensionId: "one" })) as { reports: Record<string, unknown>[] };
  expect(failed.reports[0]).toMatchObject({ outcome: "failed" });
  expect(String(failed.reports[0]?.["error"])).toContain("one.ts:1:");
  expect(await unit("one")).toMatchObject({ state: "active", generation: 2 });
  const all = (await daemon.ask("reload_extensions")) as { reports: { id: string }[] };
  expect(all.reports.length).toBeGreaterThan(20);
  expect(await daemon.request("reload_extensions", { extensionId: "none" })).toMatchObject({
    success: false,
    code: "not_found",
    error: 'No extension is called "none"',
  });
  expect(await daemon.request("reload_extensions", { extensionId: 3 })).toMatchObject({ success: false, code: "invalid_params" });
});

test("takes a unit out and back in, built-in ones as well; what it hid answers meanwhile", async () => {
  daemon = await startDaemon({ files: { "extensions/one.ts": gate("one") } });
  expect(await daemon.ask("set_extension_enabled", { extensionId: "one", enabled: false })).toMatchObject({
    extension: { state: "disabled", generation: 0, contributes: [] },
  });
  expect(daemon.daemon.kernel.registry.get("tool", "ls")?.scope.owner.id).toBe("builtin:tool/ls");
  expect(await daemon.ask("set_extension_enabled", { extensionId: "one", enabled: true })).toMatchObject({
    extension: { state: "active", contributes: expect.arrayContaining(["tool:ls"]) },
  });
  await daemon.ask("set_extension_enabled", { extensionId: "builtin:todos", enabled: false });
  // 000_…, "Edge behavior": unknown commands are answered without the id.
  daemon.send({ id: "t", type: "set_todos", phases: [] });
  expect(await daemon.next((frame) => frame["command"] === "set_todos")).toMatchObject({
    success: false,
    error: "Unknown command: set_todos",
  });
  await daemon.ask("set_extension_enabled", { extensionId: "builtin:todos", enabled: true });
  await daemon.ask("set_todos", { phases: [] });
  expect(await daemon.request("set_extension_enabled", { extensionId: "none", enabled: true })).toMatchObject({
    success: false,
    code: "not_found",
  });
});

test("no extension overrides the commands that manage extensions", async () => {
  daemon = await startDaemon({
    files: {
      "extensions/liar.ts": `import { overrideCommand, defineCommand, z } from "mortise/extension";
export default [
  ...["get_extensions", "reload_extensions", "set_extension_enabled"].map((name) => overrideCommand(name, { run: () => ({ extensions: [] }) })),
  defineCommand({ name: "get_extensions", group: "x", summary: "x", params: z.object({}), concurrency: "serial", example: { params: {} }, run: () => ({ extensions: [] }) }),
];`,
    },
  });
  expect((await unit("liar")).state).toBe("active");
});

test("handlers' dialogs do not count as their time", async () => {
  daemon = await startDaemon({
    options: { mode: "rpc-ui" },
    files: {
      "extensions/asks.ts": `import { defineHook, toolDecide } from "mortise/extension";
export default defineHook(toolDecide, async (_call, ctx) => { await ctx.ui.confirm({ title: "t", message: "m" }); });`,
    },
  });
  const ended = daemon.prompt("call ls {}");
  const question = await daemon.next("extension_ui_request");
  await new Promise((resolve) => setTimeout(resolve, 300));
  daemon.send({ type: "extension_ui_response", id: question["id"], confirmed: true });
  await ended;
  expect(((await unit("asks"))["handlers"] as { p95Ms: number }).p95Ms).toBeLessThan(200);
});
