// extensions.md 4.9: whatever happens in whatever order, the registry is the fold of the active generations (invariants 1, 2, 3 and 6;
// a built-in is among the units and has no exemption: invariant 11).
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { defineTool, z } from "mortise/extension";
import { afterEach, expect, test } from "vitest";
import type { Scope } from "../../../core/kernel/scope.ts";
import type { BuiltinUnit } from "../../../core/loader/host.ts";
import type { Loader } from "../../../core/loader/loader.ts";
import { folderWith, type Started, start, stopLoaders } from "./_support.ts";

afterEach(stopLoaders);

const soak = process.env["MORTISE_SOAK"] !== undefined;
const UNITS = ["a", "b", "c"] as const;
const TOOLS = ["t", "u"] as const;

type Step =
  | { do: "write"; unit: string; tools: string[]; broken: "no" | "syntax" | "setup" | "empty" }
  | { do: "remove" | "disable" | "enable" | "quarantine"; unit: string }
  | { do: "builtin"; act: "reload" | "disable" | "enable" | "quarantine" }
  | { do: "begin"; tool: string }
  | { do: "end" };

const unit = fc.constantFrom(...UNITS);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant("write" as const),
      unit,
      tools: fc.uniqueArray(fc.constantFrom(...TOOLS), { minLength: 1 }),
      broken: fc.constantFrom("no", "no", "no", "syntax", "setup", "empty") as fc.Arbitrary<"no" | "syntax" | "setup" | "empty">,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constantFrom("remove", "disable", "enable", "quarantine"), unit }) as fc.Arbitrary<Step>,
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("begin" as const), tool: fc.constantFrom(...TOOLS) }) },
  { weight: 1, arbitrary: fc.constant({ do: "end" as const }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("builtin" as const),
      act: fc.constantFrom("reload" as const, "disable" as const, "enable" as const, "quarantine" as const),
    }),
  },
);

const sourceOf = (tools: string[], broken: string, content: number) => {
  if (broken === "syntax") return "export default (";
  if (broken === "empty") return "export {}";
  const list = tools.map(
    (name) => `defineTool({ name: "${name}", description: "", params: z.object({}), run: () => "${content}" })`,
  );
  const setup = broken === "setup" ? "s.own(() => {}); throw new Error('set-up')" : "setInterval(() => {}, 1e6); s.own(() => {})";
  return `import { defineExtension, defineTool, z } from "mortise/extension"; export default defineExtension({ name: "e", contributes: [${list}], setup(s) { ${setup} } })`;
};

const BUILTIN: BuiltinUnit = {
  id: "builtin:d",
  name: "d",
  definitions: () => [defineTool({ name: "t", description: "", params: z.object({}), run: () => "built in" })],
};

/** What the files say should be live. */
class Model {
  readonly good = new Map<string, { tools: string[]; content: number }>();
  /** Of discovery: each unit is a root of its own. */
  order: string[] = [];
  readonly off = new Set<string>();
  readonly quarantined = new Set<string>();
  builtin: "on" | "off" | "quarantined" = "on";

  answer(tool: string): string | undefined {
    for (const name of this.order) {
      const live = this.good.get(name);
      if (live?.tools.includes(tool) && !this.off.has(name) && !this.quarantined.has(name)) return String(live.content);
    }
    return tool === "t" && this.builtin === "on" ? "built in" : undefined;
  }
}

async function apply(
  step: Step,
  model: Model,
  started: Started,
  folder: string,
  content: number,
  held: Array<() => void>,
): Promise<void> {
  const { loader, host } = started;
  const path = (name: string) => join(folder, `${name}.ts`);
  const known = (name: string) => loader.units().some((one) => one.id === path(name));
  switch (step.do) {
    case "write": {
      const before = host.registry.version;
      await writeFile(path(step.unit), sourceOf(step.tools, step.broken, content));
      if (!model.order.includes(step.unit)) model.order.push(step.unit);
      if (!known(step.unit)) await loader.addRoot({ path: path(step.unit), origin: "user", kind: "unit" });
      else await loader.reload(path(step.unit));
      if (model.off.has(step.unit)) {
        // Read when it is enabled again; until then nothing of it is seen.
        if (step.broken === "no") model.good.set(step.unit, { tools: step.tools, content });
        else model.good.delete(step.unit);
      } else if (step.broken === "no") {
        model.good.set(step.unit, { tools: step.tools, content });
        model.quarantined.delete(step.unit);
      } else {
        expect(host.registry.version).toBe(before);
      }
      return;
    }
    case "remove":
      if (!known(step.unit)) return;
      await rm(path(step.unit), { force: true });
      await loader.removeRoot(path(step.unit));
      model.order = model.order.filter((name) => name !== step.unit);
      model.good.delete(step.unit);
      model.off.delete(step.unit);
      model.quarantined.delete(step.unit);
      return;
    case "disable":
      if (!known(step.unit)) return;
      await loader.setEnabled(path(step.unit), false);
      model.off.add(step.unit);
      model.quarantined.delete(step.unit);
      return;
    case "enable": {
      if (!known(step.unit) || !model.off.has(step.unit)) return;
      await loader.setEnabled(path(step.unit), true);
      model.off.delete(step.unit);
      // What lies there now decides, not what was live before it was disabled.
      if (loader.units().find((one) => one.id === path(step.unit))?.state !== "active") model.good.delete(step.unit);
      return;
    }
    case "quarantine":
      if (model.good.has(step.unit) && !model.off.has(step.unit)) model.quarantined.add(step.unit);
      loader.quarantine(path(step.unit), "of the test");
      return;
    case "builtin":
      return applyToBuiltin(step.act, model, loader);
    case "begin": {
      const scope = host.registry.get("tool", step.tool)?.scope;
      if (scope !== undefined) held.push(scope.lease("run"));
      return;
    }
    case "end":
      held.pop()?.();
  }
}

async function applyToBuiltin(act: "reload" | "disable" | "enable" | "quarantine", model: Model, loader: Loader): Promise<void> {
  if (act === "reload" && model.builtin !== "off") {
    await loader.reload(BUILTIN.id);
    model.builtin = "on";
  } else if (act === "disable" || act === "enable") {
    const was = model.builtin;
    await loader.setEnabled(BUILTIN.id, act === "enable");
    // To enable what is enabled brings nothing back from quarantine.
    model.builtin = act === "disable" ? "off" : was === "off" ? "on" : was;
  } else if (act === "quarantine" && model.builtin === "on") {
    loader.quarantine(BUILTIN.id, "of the test");
    model.builtin = "quarantined";
  }
}

async function check(model: Model, started: Started, seen: Map<string, number>, scopes: Set<Scope>): Promise<void> {
  const { loader, host, call } = started;
  const infos = loader.units();
  for (const tool of TOOLS) {
    const expected = model.answer(tool);
    const entry = host.registry.get("tool", tool);
    expect(entry === undefined ? undefined : await call(tool)).toBe(expected);
  }
  for (const entry of host.registry.all("tool")) {
    scopes.add(entry.scope);
    expect(entry.scope.state).toBe("active");
    expect(infos.some((info) => info.id === entry.scope.owner.id && info.generation === entry.scope.generation)).toBe(true);
  }
  for (const info of infos) {
    if (info.generation === 0) continue;
    expect(info.generation).toBeGreaterThanOrEqual(seen.get(info.id) ?? 0);
    seen.set(info.id, info.generation);
  }
}

test("the registry is the fold of the active generations", { timeout: 600_000 }, async () => {
  const runs = soak ? 300 : 15;
  const folder = await folderWith();
  const cacheDir = await folderWith();
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 20 }), async (steps) => {
      for (const name of UNITS) await rm(join(folder, `${name}.ts`), { force: true });
      const started = await start(undefined, { cacheDir, builtins: [BUILTIN] });
      const model = new Model();
      const held: Array<() => void> = [];
      const scopes = new Set<Scope>();
      const generations = new Map<string, number>();
      let content = 0;
      try {
        for (const one of steps) {
          await apply(one, model, started, folder, ++content, held);
          await check(model, started, generations, scopes);
          if (one.do === "remove") generations.delete(join(folder, `${one.unit}.ts`));
        }
        for (const release of held) release();
        await new Promise((resolve) => setImmediate(resolve));
        await new Promise((resolve) => setImmediate(resolve));
        // After quiescence nothing but the active generations owns anything.
        const active = new Set(started.host.registry.all("tool").map((entry) => entry.scope));
        for (const scope of scopes) {
          expect(scope.leases).toBe(0);
          if (!active.has(scope)) expect([scope.state, scope.effects]).toEqual(["disposed", []]);
        }
      } finally {
        await stopLoaders();
      }
    }),
    { numRuns: runs },
  );
});
