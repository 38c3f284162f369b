import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "../../../core/extension.ts";
import { defineFrame, type FrameDefinition } from "../../../core/kernel/definition.ts";
import { type Entry, Registry } from "../../../core/kernel/registry.ts";
import { type Origin, RANK, Scope } from "../../../core/kernel/scope.ts";

const frame = (name: string, summary: string): FrameDefinition =>
  defineFrame({ name, summary, scope: "process", fields: z.record(z.string(), z.unknown()), example: {} });
const scopeOf = (id: string, origin: Origin, order: number) => new Scope({ owner: { id, origin, order }, generation: 1 });

describe("Registry", () => {
  it("answers with the highest rank and uncovers the next when it is removed", () => {
    const registry = new Registry();
    const builtin = registry.entry(frame("x", "built-in"), scopeOf("b", "builtin", 0));
    const project = registry.entry(frame("x", "project"), scopeOf("p", "project", 0));
    registry.swap({ add: [project] });
    registry.swap({ add: [builtin] });
    expect(registry.get("event", "x")).toBe(project);
    const diff = registry.swap({ remove: [project] });
    expect(registry.get("event", "x")).toBe(builtin);
    expect(diff.touches("event", "x")).toBe(true);
  });

  it("lets the first in discovery order answer within a rank, however late it was added", () => {
    const registry = new Registry();
    const second = registry.entry(frame("x", "second"), scopeOf("b", "user", 2));
    const first = registry.entry(frame("x", "first"), scopeOf("a", "user", 1));
    registry.swap({ add: [second] });
    registry.swap({ add: [first] });
    expect(registry.get("event", "x")).toBe(first);
    expect(registry.stack("event", "x")).toEqual([first, second]);
  });

  it("raises one change for a swap, and none for a swap of nothing", () => {
    const registry = new Registry();
    const changes: number[] = [];
    registry.onChange((diff) => changes.push(diff.version));
    const scope = scopeOf("a", "user", 1);
    const entries = ["x", "y", "z"].map((name) => registry.entry(frame(name, ""), scope));
    registry.swap({ add: entries });
    registry.swap({});
    registry.swap({ remove: [registry.entry(frame("absent", ""), scope)] });
    expect(changes).toEqual([1]);
  });

  it("keeps a built-in command answering when an extension defines the same name", async () => {
    const { bareKernel } = await import("../../support/kernel.ts");
    const { defineCommand } = await import("../../../core/extension.ts");
    const command = (text: string) =>
      defineCommand({
        name: "hello",
        group: "Test",
        summary: "Says who answers.",
        concurrency: "serial",
        params: z.object({}),
        result: z.object({ text: z.string() }),
        example: { params: {} },
        run: () => ({ text }),
      });
    const daemon = bareKernel();
    daemon.add("user", "user", command("user"));
    daemon.add("builtin", "builtin", command("builtin"));
    daemon.send({ id: 1, type: "hello" });
    expect(daemon.frames.at(-1)).toMatchObject({ id: 1, success: true, data: { text: "builtin" } });
  });

  it("decides conflicts by preference and suppression", () => {
    const registry = new Registry();
    const a = registry.entry(frame("x", "a"), scopeOf("a", "user", 1));
    const b = registry.entry(frame("x", "b"), scopeOf("b", "user", 2));
    registry.swap({ add: [a, b] });
    registry.setPolicy({ prefer: new Map([["event:x", "b"]]), suppress: new Set() });
    expect(registry.get("event", "x")).toBe(b);
    registry.setPolicy({ prefer: new Map([["event:x", "b"]]), suppress: new Set(["b"]) });
    expect(registry.get("event", "x")).toBe(a);
    registry.setPolicy({ prefer: new Map(), suppress: new Set(["a", "b"]) });
    expect(registry.get("event", "x")).toBeUndefined();
  });

  it("gives a contribution a second name, which lives and dies with it", () => {
    const registry = new Registry();
    const a = registry.entry(frame("x", "a"), scopeOf("a", "user", 1));
    const b = registry.entry(frame("x", "b"), scopeOf("b", "user", 2));
    const rival = registry.entry(frame("y", "rival"), scopeOf("builtin", "builtin", 1));
    registry.swap({ add: [a, b, rival] });
    const diff = registry.setPolicy({ prefer: new Map(), suppress: new Set(), alias: new Map([["event:x b", "y"]]) });
    expect([...diff.changed]).toEqual(["event:y"]);
    const alias = registry.get("event", "y");
    expect(alias).toMatchObject({ name: "y", definition: { name: "y", summary: "b" }, scope: b.scope });
    expect(registry.get("event", "y")).toBe(alias);
    expect(registry.stack("event", "y").at(-1)).toBe(rival);
    // A new generation has the name in the same step; without it the rival answers.
    const next = registry.entry(frame("x", "b2"), scopeOf("b", "user", 2));
    const swapped = registry.swap({ remove: registry.ownedBy(b.scope), add: [next] });
    expect(swapped.touches("event", "y")).toBe(true);
    expect(registry.get("event", "y")?.definition).toMatchObject({ summary: "b2" });
    registry.swap({ remove: [next] });
    expect(registry.get("event", "y")).toBe(rival);
    registry.swap({ add: [next] });
    registry.setPolicy({ prefer: new Map(), suppress: new Set(["event:x b"]) });
    expect(registry.get("event", "y")).toBe(rival);
    expect(registry.size).toBe(3);
  });

  it("is the fold of what was added and not removed, whatever the history", () => {
    const origins = Object.keys(RANK) as Origin[];
    const step = fc.record({
      unit: fc.nat(5),
      names: fc.uniqueArray(fc.constantFrom("x", "y", "z:1"), { minLength: 1 }),
      add: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const registry = new Registry();
        const scopes = [0, 1, 2, 3, 4, 5].map((unit) => scopeOf(`u${unit}`, origins[unit % origins.length] as Origin, unit));
        const live = new Map<number, Entry[]>();
        for (const { unit, names, add } of steps) {
          const before = live.get(unit) ?? [];
          const next = add ? names.map((name) => registry.entry(frame(name, `u${unit}`), scopes[unit] as Scope)) : [];
          registry.swap({ remove: before, add: next });
          live.set(unit, next);
        }
        const all = [...live.values()].flat();
        for (const name of ["x", "y", "z:1"]) {
          const expected = all
            .filter((entry) => entry.name === name)
            .sort((a, b) => RANK[b.scope.owner.origin] - RANK[a.scope.owner.origin] || a.scope.owner.order - b.scope.owner.order);
          expect(registry.stack("event", name)).toEqual(expected);
          expect(registry.get("event", name)).toBe(expected[0]);
        }
        expect(new Set(registry.all("event"))).toEqual(new Set(all));
      }),
    );
  });
});
