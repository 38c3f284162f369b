// Fields of get_state come from extensions: one that fails is left out and named, the host gets the others.
import { afterEach, expect, test, vi } from "vitest";
import { startDaemon, type TestDaemon } from "../../../core/testing.ts";

let daemon: TestDaemon | undefined;
afterEach(async () => {
  vi.useRealTimers();
  await daemon?.stop();
  daemon = undefined;
});

const field = (name: string, read: string) => `m.defineStateField({ name: "${name}", schema: m.z.any(), read: ${read} })`;
const unit = (...fields: string[]) => `import * as m from "mortise/extension"; export default [${fields.join(", ")}];`;

async function start(...fields: string[]): Promise<TestDaemon> {
  daemon = await startDaemon({ files: { "extensions/fields.ts": unit(...fields) } });
  await daemon.daemon.loader.settled();
  return daemon;
}

const told = (d: TestDaemon) =>
  d.frames.flatMap((frame) =>
    frame.type === "extension_error" ? [`${String(frame["event"]).replace("state field ", "")}: ${frame["error"]}`] : [],
  );

test("fields that throw, reject or are no JSON", async () => {
  const d = await start(
    field("good", "() => 1"),
    field("later", "async () => [2]"),
    field("none", "() => undefined"),
    field("thrown", '() => { throw new Error("thrown") }'),
    field("rejected", 'async () => { throw new Error("rejected") }'),
    field("circle", "() => { const a = {}; a.a = a; return a; }"),
    field("code", "() => () => 1"),
    field("big", "() => 1n"),
    field("unwritable", '() => ({ toJSON() { throw new Error("unwritable") } })'),
  );
  for (let round = 0; round < 2; round++) {
    const state = await d.ask("get_state");
    expect(state).toMatchObject({ good: 1, later: [2], isStreaming: false });
    for (const name of ["none", "thrown", "rejected", "circle", "code", "big", "unwritable"])
      expect(state).not.toHaveProperty(name);
  }
  const errors = told(d).join("\n");
  for (const text of [
    "thrown: thrown",
    "rejected: rejected",
    "circle: ",
    "code: Its value is a function",
    "big: ",
    "unwritable: unwritable",
  ]) {
    expect(errors).toContain(text);
  }
});

test("a field that never comes holds the answer for two seconds, not for ever", async () => {
  const d = await start(field("good", "() => 1"), field("never", "() => new Promise(() => {})"));
  // What the other fields read from files is there then, and no time passes for them.
  await d.prompt("hello");
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const answer = d.ask("get_state");
  await vi.advanceTimersByTimeAsync(2_000);
  expect(await answer).toMatchObject({ good: 1 });
  expect(told(d)).toEqual(["never: It took longer than 2000 ms"]);
});
