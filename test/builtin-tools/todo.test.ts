import { afterEach, beforeEach, expect, test } from "vitest";
import todo from "../../builtin-tools/todo.ts";
import { type Bench, bench, textOf } from "./_support.ts";

let b: Bench;
beforeEach(() => {
  b = bench();
});
afterEach(() => b.close());
const call = (args: Record<string, unknown>) => b.call(todo, args);

test("a plan starts its first task, and the next one when that is done", async () => {
  const first = await call({
    op: "init",
    list: [
      { phase: "Build", items: ["a", "b"] },
      { phase: "Ship", items: ["c"] },
    ],
  });
  expect(textOf(first)).toBe("Build\n  [>] a\n  [ ] b\nShip\n  [ ] c");
  const second = await call({ op: "done", task: "a" });
  expect(textOf(second)).toBe("Build\n  [x] a\n  [>] b\nShip\n  [ ] c");
  expect(second.details).toMatchObject({ op: "done", storage: "memory", completedTasks: ["a"] });
  expect(textOf(await call({ op: "start", task: "c" }))).toBe("Build\n  [x] a\n  [ ] b\nShip\n  [>] c");
  expect(textOf(await call({ op: "append", phase: "Later", items: ["d"] }))).toContain("Later\n  [ ] d");
  expect(textOf(await call({ op: "drop", phase: "Ship" }))).toBe("Build\n  [x] a\n  [>] b\nShip\n  [-] c\nLater\n  [ ] d");
  expect(textOf(await call({ op: "rm", phase: "Build" }))).toBe("Ship\n  [-] c\nLater\n  [>] d");
  expect(textOf(await call({ op: "done" }))).toBe("Ship\n  [x] c\nLater\n  [x] d");
  expect(textOf(await call({ op: "rm" }))).toBe("The plan is empty");
});

test("a task under another name is not taken for all tasks", async () => {
  await call({ op: "init", items: ["a", "b"] });
  await expect(call({ op: "done", tasks: ["a"] })).rejects.toThrow(/Unrecognized key/);
  expect(textOf(await call({ op: "view" }))).toBe("Tasks\n  [>] a\n  [ ] b");
});

test("an error changes nothing and names what is there", async () => {
  await call({ op: "init", items: ["a", "b"] });
  for (const [args, reason] of [
    [{ op: "done", task: "x" }, 'No task reads "x"; there are: "a", "b"'],
    [{ op: "done", phase: "x" }, 'No phase is named "x"'],
    [{ op: "start" }, "name the task"],
    [{ op: "append", items: ["c", "c", "a"] }, 'Task "c" is named twice; Task "a" is in the plan already'],
    [{ op: "init" }, "give list"],
    [{ op: "init", list: [] }, "There is no task"],
  ] as const) {
    const result = await call(args);
    expect(result.isError).toBe(true);
    expect(textOf(result)).toContain(reason);
  }
  expect(textOf(await call({ op: "view" }))).toBe("Tasks\n  [>] a\n  [ ] b");
});

test("is not offered to subagents or when switched off", () => {
  const base = { mode: "rpc", hasUI: true } as const;
  const setting =
    (value: unknown) =>
    <T>() =>
      value as T;
  expect(todo.available?.({ ...base, isSubagent: false, setting: setting(undefined) })).toBe(true);
  expect(todo.available?.({ ...base, isSubagent: true, setting: setting(true) })).toBe(false);
  expect(todo.available?.({ ...base, isSubagent: false, setting: setting(false) })).toBe(false);
});
