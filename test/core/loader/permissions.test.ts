// A unit may state which kinds it contributes; anything else fails its load. In process this is advice, not a sandbox.
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { folderWith, start, stopLoaders } from "./_support.ts";

afterEach(stopLoaders);

const extension = (permissions: string, setup = "") =>
  `import { defineExtension, defineSlashCommand, defineTool, z } from "mortise/extension";
const tool = defineTool({ name: "t", description: "d", params: z.object({}), run: () => "" });
const slash = defineSlashCommand({ name: "s", description: "d", run() {} });
export default defineExtension({ name: "e", contributes: [tool], ${permissions} setup(scope) { globalThis.late = () => scope.add(slash); ${setup} } });`;

test("a kind outside the permissions fails the load and says which", async () => {
  const folder = await folderWith({
    "a.ts": extension('permissions: ["tool"],'),
    "b.ts": extension('permissions: ["hook"],'),
    "c/package.json": JSON.stringify({ mortise: { permissions: ["tool"] } }),
    "c/index.ts": extension("", "scope.add(slash)").replaceAll('"t"', '"tc"'),
    "d/package.json": JSON.stringify({ mortise: { extensions: "./main.ts", permissions: ["tool", "hook"] } }),
    "d/main.ts": extension('permissions: ["tool", "slash command"],').replaceAll('"t"', '"td"'),
    "e/package.json": JSON.stringify({ mortise: { permissions: "tool" } }),
    "e/index.ts": extension(""),
  });
  const { loader, host } = await start(folder);
  const state = (name: string) => loader.units().find((unit) => unit.id === join(folder, name));
  expect(state("a.ts")?.state).toBe("active");
  expect(state("d")?.state).toBe("active");
  expect(state("b.ts")?.error).toBe(
    'The tool "t" is outside the permissions the unit states (hook); add "tool" to them or remove it',
  );
  expect(state("c")?.error).toContain('The slash command "s" is outside the permissions the unit states (tool)');
  expect(state("e")?.error).toContain('"mortise.permissions" must be a list of kinds');
  expect(host.registry.get("slash command", "s")).toBeUndefined();
  expect(host.registry.get("tool", "tc")).toBeUndefined();
});

test("what is added later is held to them as well, and an edit of the manifest is followed", async () => {
  const folder = await folderWith({
    "c/package.json": JSON.stringify({ mortise: { permissions: ["tool"] } }),
    "c/index.ts": extension("").replace(
      "run: () =>",
      'run: () => { try { late() } catch (error) { return error.message } return "added"; } }); ({ x: () =>',
    ),
  });
  const { loader, call } = await start(folder);
  expect(await call("t")).toContain("outside the permissions");
  const { writeFile } = await import("node:fs/promises");
  await writeFile(join(folder, "c/package.json"), JSON.stringify({ mortise: { permissions: ["tool", "slash command"] } }));
  await loader.reload(join(folder, "c"));
  expect(await call("t")).toBe("added");
});
