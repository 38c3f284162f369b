import { defineService, defineTool, Extensions, Settings, type UnitInfo, z } from "mortise/extension";
import { afterEach, expect, test } from "vitest";
import conflicts from "../../../extensions/settings/conflicts.ts";
import knownSettings from "../../../extensions/settings/known-settings.ts";
import settingsUnit from "../../../extensions/settings/settings.ts";
import { Bench } from "./_bench.ts";

const benches: Bench[] = [];
afterEach(async () => {
  for (const bench of benches.splice(0)) await bench.close();
});

const tool = (name: string) => defineTool({ name, description: "", params: z.object({}), run: () => "" });
const unit = (id: string, name: string): UnitInfo => ({
  id,
  name,
  origin: "user",
  state: "active",
  generation: 1,
  contributes: [],
  shadows: [],
  shadowedBy: [],
  files: [],
  timings: { resolve: 0, transpile: 0, evaluate: 0, setup: 0, swap: 0 },
  handlers: { calls: 0, p95Ms: 0 },
  errors: 0,
});

async function start(files: Record<string, string> = {}) {
  const bench = await Bench.make(files);
  benches.push(bench);
  const unload = await bench.launch().load([settingsUnit, knownSettings, conflicts], "builtin", "builtin:settings");
  const units = [unit("/u/low.ts", "low"), unit("/u/high.ts", "high"), unit("builtin:settings", "settings")];
  await bench.load([
    defineService(Extensions, { create: () => ({ list: () => units, reload: async () => [], setEnabled: async () => {} }) }),
  ]);
  await bench.load([tool("read")], "user", "/u/low.ts");
  await bench.load([tool("read"), tool("other")], "project", "/u/high.ts");
  const owner = (name: string) => bench.kernel.registry.get("tool", name)?.scope.owner.id;
  return { bench, owner, unload, settings: bench.ctx.use(Settings) };
}

test("rank decides until prefer names another extension, by name or id, and back", async () => {
  const { owner, settings } = await start();
  expect(owner("read")).toBe("/u/high.ts");
  settings.setRuntime("prefer", { "tool:read": "low" });
  expect(owner("read")).toBe("/u/low.ts");
  settings.setRuntime("prefer", { "tool:read": "/u/high.ts" });
  expect(owner("read")).toBe("/u/high.ts");
  settings.setRuntime("prefer", { "tool:read": "nobody" });
  expect(owner("read")).toBe("/u/high.ts");
});

test("suppress hides an extension or one of its contributions, but never the settings themselves", async () => {
  const { bench, owner, settings } = await start({
    "home/config.yml": "suppress: ['tool:read high', settings, 'service:settings settings']\n",
  });
  expect([owner("read"), owner("other")]).toEqual(["/u/low.ts", "/u/high.ts"]);
  expect(bench.ctx.tryUse(Settings)).toBeDefined();
  settings.setRuntime("suppress", ["high"]);
  expect([owner("read"), owner("other")]).toEqual(["/u/low.ts", undefined]);
  settings.setRuntime("suppress", []);
  expect([owner("read"), owner("other")]).toEqual(["/u/high.ts", "/u/high.ts"]);
});

test("alias gives a hidden tool a name of its own, also to what loads later, and keeps none when it is taken back", async () => {
  const { bench, owner, settings } = await start({ "home/config.yml": "alias:\n  tool:read low: plain_read\n" });
  expect([owner("read"), owner("plain_read")]).toEqual(["/u/high.ts", "/u/low.ts"]);
  expect(bench.kernel.registry.get("tool", "plain_read")?.definition.name).toBe("plain_read");
  settings.setRuntime("alias", { "tool:later /u/new.ts": "sooner" });
  expect([owner("plain_read"), owner("sooner")]).toEqual(["/u/low.ts", undefined]);
  const unload = await bench.load([tool("later")], "user", "/u/new.ts");
  expect([owner("later"), owner("sooner")]).toEqual(["/u/new.ts", "/u/new.ts"]);
  settings.setRuntime("suppress", ["tool:later /u/new.ts"]);
  expect([owner("later"), owner("sooner")]).toEqual([undefined, "/u/new.ts"]);
  await unload();
  expect(owner("sooner")).toBeUndefined();
  settings.setRuntime("alias", { "tool:read low": "bare_read" });
  expect([owner("plain_read"), owner("bare_read")]).toEqual([undefined, "/u/low.ts"]);
});

test("a key of prefer that is none is refused and says what it should be", async () => {
  const { settings } = await start();
  expect(() => settings.setRuntime("prefer", { read: "low" })).toThrow(/"kind:name"/);
});

test.each([
  ["hook:tool.decide high", "other"],
  ["tool:read", "plain"],
  ["tool:read low", "Not a name"],
])("alias %s: %s is refused and says what it should be", async (line, name) => {
  const { settings } = await start();
  expect(() => settings.setRuntime("alias", { [line]: name })).toThrow(/Expected/);
});

test("a project that is not trusted decides nothing, and unloading falls back to ranks", async () => {
  const project = await start({ "project/.mortise/config.yml": "suppress: [high]\n" });
  expect(project.owner("other")).toBe("/u/high.ts");
  const user = await start({ "home/config.yml": "suppress: [high]\n" });
  expect(user.owner("other")).toBeUndefined();
  await user.unload();
  expect(user.owner("other")).toBe("/u/high.ts");
});
