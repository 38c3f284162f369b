import { describe, expect, it } from "vitest";
import { Scope } from "../../../core/kernel/scope.ts";

const make = (onUndoError?: (error: unknown, label: string) => void, undoTimeoutMs?: number) =>
  new Scope({ owner: { id: "unit", origin: "user", order: 0 }, generation: 3, onUndoError, undoTimeoutMs });

describe("Scope", () => {
  it("undoes in reverse order and waits for each", async () => {
    const scope = make();
    const log: string[] = [];
    scope.own(() => void log.push("first"));
    scope.own(async () => {
      await Promise.resolve();
      log.push("second");
    });
    scope.own(() => void log.push("third"));
    await scope.dispose();
    expect(log).toEqual(["third", "second", "first"]);
    expect(scope.signal.aborted).toBe(true);
    expect(scope.effects).toEqual([]);
  });

  it("goes on after an undo that throws or never ends, and reports it", async () => {
    const failures: string[] = [];
    const scope = make((_error, label) => failures.push(label), 20);
    let reached = false;
    scope.own(() => {
      reached = true;
    }, "last");
    scope.own(() => new Promise(() => {}), "hangs");
    scope.own(() => {
      throw new Error("no");
    }, "throws");
    await scope.dispose();
    expect(failures).toEqual(["throws", "hangs"]);
    expect(reached).toBe(true);
  });

  it("undoes an effect that comes after disposal at once", async () => {
    const scope = make();
    await scope.dispose();
    let undone = false;
    scope.own(() => {
      undone = true;
    });
    expect(undone).toBe(true);
    expect(() => scope.assertLive("add a tool")).toThrow(/add a tool.*"unit" was unloaded/);
  });

  it("is drained when every lease is released, each once", async () => {
    const scope = make();
    const first = scope.lease();
    const second = scope.lease();
    let drained = false;
    const waiting = scope.whenDrained().then(() => {
      drained = true;
    });
    first();
    first();
    await Promise.resolve();
    expect(drained).toBe(false);
    expect(scope.leases).toBe(1);
    second();
    await waiting;
    expect(drained).toBe(true);
  });

  it("forgets what was undone by hand", async () => {
    const scope = make();
    let count = 0;
    const undo = scope.own(() => {
      count++;
    });
    await undo();
    await undo();
    await scope.dispose();
    expect(count).toBe(1);
  });
});
