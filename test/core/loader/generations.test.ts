// Versions of a unit: which one a call runs on, how long an old one stays, and what takes one out.
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { folderWith, start, stopLoaders, toolFile, write } from "./_support.ts";

afterEach(stopLoaders);

describe("generations", () => {
  const slow = (answer: string) => `import { defineTool, z } from "mortise/extension"; let finish: any;
    export default [defineTool({ name: "slow", description: "", params: z.object({}), run: (ctx) => new Promise((go, fail) => { (globalThis as any).finishSlow = () => go("${answer}"); ctx.signal.addEventListener("abort", () => fail(ctx.signal.reason)) }) }),
      defineTool({ name: "quick", description: "", params: z.object({}), run: () => "${answer}" })];`;
  const finishSlow = () => (globalThis as unknown as { finishSlow(): void }).finishSlow();

  test("reload test 10: a call in flight ends on the old version, a second one runs on the new", async () => {
    const folder = await folderWith({ "s.ts": slow("old") });
    const { loader, call, host } = await start(folder);
    const running = call("slow");
    const old = host.registry.get("tool", "slow")?.scope;
    await write(folder, { "s.ts": slow("new") });
    await loader.reload();
    expect(await call("quick")).toBe("new");
    expect(loader.units()[0]).toMatchObject({ state: "active", generation: 2, draining: 1 });
    expect(old?.state).toBe("draining");
    finishSlow();
    expect(await running).toBe("old");
    await expect.poll(() => old?.state).toBe("disposed");
    expect(loader.units()[0]?.draining).toBeUndefined();
  });

  test("reload test 12: a third generation forces the middle one out; never three", async () => {
    const folder = await folderWith({ "s.ts": slow("1") });
    const { loader, call, host } = await start(folder);
    const first = call("slow");
    const finishFirst = (globalThis as unknown as { finishSlow(): void }).finishSlow;
    await write(folder, { "s.ts": slow("2") });
    await loader.reload();
    const middle = host.registry.get("tool", "slow")?.scope;
    const second = call("slow").catch((error: Error) => error.message);
    await write(folder, { "s.ts": slow("3") });
    await loader.reload();
    expect(await second).toContain("was unloaded");
    expect(middle?.state).toBe("disposed");
    expect(loader.units()[0]).toMatchObject({ generation: 3, draining: 1 });
    finishFirst();
    expect(await first).toBe("1");
  });

  test("reload test 11: calls other than runs are given up at the drain limit, runs are not", async () => {
    const folder = await folderWith({ "s.ts": slow("1") });
    const { loader, host } = await start(folder, { drainLimitMs: 30 });
    const scope = host.registry.get("tool", "slow")?.scope;
    const release = scope?.lease("call");
    await write(folder, { "s.ts": slow("2") });
    await loader.reload();
    await expect.poll(() => scope?.signal.aborted).toBe(true);
    release?.();
    const second = host.registry.get("tool", "slow")?.scope;
    const releaseRun = second?.lease("run");
    await write(folder, { "s.ts": slow("3") });
    await loader.reload();
    await new Promise((resolve) => setTimeout(resolve, 80));
    expect(second?.state).toBe("draining");
    releaseRun?.();
    await expect.poll(() => second?.state).toBe("disposed");
  });

  test("reload test 24: a unit that reloads itself from its own call is answered at the swap", async () => {
    const folder = await folderWith({
      "s.ts": toolFile("self", "x").replace(`run: () => "x" as string`, `run: () => (globalThis as any).reloadSelf()`),
    });
    const { loader, call } = await start(folder);
    (globalThis as Record<string, unknown>)["reloadSelf"] = async () => (await loader.reload(join(folder, "s.ts")))[0]?.outcome;
    expect(await call("self")).toBe("loaded");
    delete (globalThis as Record<string, unknown>)["reloadSelf"];
  });

  test("reload test 28: an undo that hangs does not hold up the next version", async () => {
    const hanging = (
      answer: string,
      undo: string,
    ) => `import { defineExtension, defineTool, z } from "mortise/extension"; export default defineExtension({ name: "h",
      contributes: [defineTool({ name: "t", description: "", params: z.object({}), run: () => "${answer}" })], setup(scope) { ${undo} } })`;
    const folder = await folderWith({ "h.ts": hanging("1", `scope.own(() => new Promise(() => {}), "shutdown")`) });
    const { loader, call, host } = await start(folder);
    await write(folder, { "h.ts": hanging("2", "") });
    await loader.reload();
    expect(await call("t")).toBe("2");
    const report = await host.reported((one) => one.phase === "dispose");
    expect(String(report.error)).toContain('Undoing "shutdown" took longer');
  });

  test("reload test 20 and 19: an edit during a slow load is not lost; A→B→A ends on A", async () => {
    const timed = (answer: string) => `await new Promise((go) => setTimeout(go, 60));\n${toolFile("t", answer)}`;
    const folder = await folderWith({ "t.ts": timed("A") });
    const { loader, call } = await start(folder);
    await write(folder, { "t.ts": timed("B") });
    const first = loader.reload(join(folder, "t.ts"));
    await new Promise((resolve) => setTimeout(resolve, 20));
    await write(folder, { "t.ts": timed("A") });
    await Promise.all([first, loader.reload(join(folder, "t.ts"))]);
    expect(await call("t")).toBe("A");
  });

  test("a quarantined unit is out, its gates block, and an edit brings it back", async () => {
    const gate = (
      answer: string,
    ) => `import { defineHook, defineHookPoint, defineTool, z } from "mortise/extension"; const point = defineHookPoint({ name: "gate", combine: "veto", summary: "" });
      export default [defineHook(point, () => undefined), defineTool({ name: "t", description: "", params: z.object({}), run: () => "${answer}" })]`;
    const folder = await folderWith({ "g.ts": gate("1") });
    const { loader, host, call } = await start(folder, { isGate: (name) => name === "gate" });
    loader.quarantine(join(folder, "g.ts"), "it failed 10 times");
    expect(host.registry.get("tool", "t")).toBeUndefined();
    expect(loader.units()[0]?.state).toBe("quarantined");
    const [blocker] = host.registry.all("hook");
    expect(() => blocker?.definition.run({} as never, {} as never)).toThrow(/taken out of service: it failed 10 times/);
    await write(folder, { "g.ts": "export default (" });
    await loader.reload();
    expect(host.registry.all("hook")).toEqual([blocker]);
    await write(folder, { "g.ts": gate("2") });
    await loader.reload();
    expect(await call("t")).toBe("2");
    expect(host.registry.all("hook")).toHaveLength(1);
    expect(host.registry.all("hook")[0]).not.toBe(blocker);
  });
});
