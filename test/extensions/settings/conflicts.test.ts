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
  timings: { resolve: 0, transpile: 0, evaluate: 0, setup: 0 },
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

test("a project that is not trusted decides nothing, and unloading falls back to ranks", async () => {
  const project = await start({ "project/.mortise/config.yml": "suppress: [high]\n" });
  expect(project.owner("other")).toBe("/u/high.ts");
  const user = await start({ "home/config.yml": "suppress: [high]\n" });
  expect(user.owner("other")).toBeUndefined();
  await user.unload();
  expect(user.owner("other")).toBe("/u/high.ts");
});
