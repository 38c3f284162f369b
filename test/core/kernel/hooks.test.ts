import { describe, expect, it } from "vitest";
import { defineHook, defineHookPoint, type Veto } from "../../../core/extension.ts";
import { bareKernel } from "../../support/kernel.ts";

describe("HookRunner", () => {
  it("orders handlers by priority, then rank, then discovery", async () => {
    const daemon = bareKernel();
    const point = defineHookPoint<string[]>({ name: "p", combine: "series", summary: "" });
    const handler = (label: string, priority = 0) => defineHook(point, (log) => void log.push(label), { priority });
    const scope = daemon.add("u", "user", handler("user"), handler("late", 50), handler("early", -50));
    daemon.add("b", "builtin", handler("built-in"));
    const log: string[] = [];
    await daemon.kernel.createContext(scope).hook(point, log);
    expect(log).toEqual(["early", "built-in", "user", "late"]);
  });

  it("combines by the point's rule", async () => {
    const daemon = bareKernel();
    const first = defineHookPoint<number, string>({ name: "first", combine: "first", summary: "" });
    const chain = defineHookPoint<number, number>({ name: "chain", combine: "chain", summary: "" });
    const seen: string[] = [];
    const scope = daemon.add(
      "u",
      "user",
      defineHook(first, () => undefined),
      defineHook(first, (n) => `answer ${n}`),
      defineHook(first, () => void seen.push("never")),
      defineHook(chain, (n) => n + 1),
      defineHook(chain, () => undefined),
      defineHook(chain, (n) => n * 10),
    );
    const ctx = daemon.kernel.createContext(scope);
    expect(await ctx.hook(first, 7)).toBe("answer 7");
    expect(await ctx.hook(chain, 1)).toBe(20);
    expect(seen).toEqual([]);
  });

  it("blocks when a gate throws or hangs, runs all gates, and has no answer that allows", async () => {
    const daemon = bareKernel();
    const gate = defineHookPoint<object, Veto>({ name: "gate", combine: "veto", summary: "", timeoutMs: 30 });
    const ran: string[] = [];
    const throwing = daemon.add(
      "t",
      "user",
      defineHook(gate, () => {
        throw new Error("broken check");
      }),
    );
    daemon.add(
      "later",
      "user",
      defineHook(gate, () => void ran.push("later")),
    );
    const ctx = daemon.kernel.createContext(throwing);
    expect(await ctx.hook(gate, {})).toEqual({ block: true, reason: 'A check of "t" failed: broken check' });
    expect(ran).toEqual(["later"]);
    daemon.kernel.registry.swap({ remove: daemon.kernel.registry.ownedBy(throwing) });
    daemon.add(
      "h",
      "user",
      defineHook(gate, () => new Promise<Veto>(() => {})),
    );
    expect(await ctx.hook(gate, {})).toMatchObject({ block: true });
    expect(daemon.frames.map((frame) => [frame["extensionPath"], frame["event"]])).toEqual([
      ["t", "gate"],
      ["h", "gate"],
    ]);
  });

  it("stops the clock while the handler's own dialog is open", async () => {
    const daemon = bareKernel();
    const { default: confirm } = await import("../../../extensions/ui/confirm.ts");
    const gate = defineHookPoint<object, Veto>({ name: "gate", combine: "veto", summary: "", timeoutMs: 40 });
    const scope = daemon.add(
      "u",
      "user",
      confirm,
      defineHook(gate, async (_input, ctx) =>
        (await ctx.ui.confirm({ title: "t", message: "m" })) ? undefined : { block: true as const },
      ),
    );
    const verdict = daemon.kernel.createContext(scope).hook(gate, {});
    const dialog = await daemon.next((frame) => frame.type === "extension_ui_request");
    await new Promise((resolve) => setTimeout(resolve, 120));
    daemon.send({ type: "extension_ui_response", id: dialog["id"], confirmed: true });
    expect(await verdict).toBeUndefined();
  });

  it("keeps to pinned handlers and holds their generation", async () => {
    const daemon = bareKernel();
    const point = defineHookPoint<string[]>({ name: "p", combine: "series", summary: "" });
    const scope = daemon.add(
      "u",
      "user",
      defineHook(point, (log) => void log.push("old")),
    );
    const ctx = daemon.kernel.createContext(scope);
    const pinned = ctx.pinHooks([point]);
    daemon.kernel.registry.swap({ remove: daemon.kernel.registry.ownedBy(scope) });
    daemon.add(
      "u",
      "user",
      defineHook(point, (log) => void log.push("new")),
    );
    expect(scope.leases).toBe(1);
    const log: string[] = [];
    await pinned.run(point, log, ctx);
    await ctx.hook(point, log);
    pinned.release();
    expect(log).toEqual(["old", "new"]);
    expect(scope.leases).toBe(0);
  });
});
