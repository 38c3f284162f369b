// What an extension never finishes does not keep the host from everything else.
import { afterEach, expect, test, vi } from "vitest";
import { startDaemon, type TestDaemon } from "../../../core/testing.ts";

let daemon: TestDaemon | undefined;
afterEach(async () => {
  vi.useRealTimers();
  await daemon?.stop();
  daemon = undefined;
});

async function start(definition: string): Promise<TestDaemon> {
  const text = `import * as m from "mortise/extension"; export default ${definition};`;
  daemon = await startDaemon({ files: { "extensions/unit.ts": text } });
  await daemon.daemon.loader.settled();
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  return daemon;
}

/** The unit's own: files of others are read while a clock runs that is not theirs. */
const errors = (d: TestDaemon) =>
  d.frames.flatMap((frame) =>
    frame.type === "extension_error" && String(frame["extensionPath"]).endsWith("unit.ts")
      ? [`${frame["event"]}: ${frame["error"]}`]
      : [],
  );

test("a serial command that never ends lets the others go on after 40 s", async () => {
  const d = await start(
    `m.defineCommand({ name: "stuck", group: "x", summary: "x", concurrency: "serial", params: m.z.object({}), example: { params: {} }, run: (ctx) => new Promise((_, reject) => ctx.signal.addEventListener("abort", () => reject(new Error("the end")))) })`,
  );
  d.send({ type: "stuck" });
  d.send({ id: "after", type: "get_state" });
  await vi.advanceTimersByTimeAsync(39_999);
  const answered = () => d.frames.filter((frame) => frame["id"] === "after");
  expect(answered()).toEqual([]);
  await vi.advanceTimersByTimeAsync(1);
  // No time passes while it is waited for.
  expect(await d.next((frame) => frame["id"] === "after", { after: 0 })).toMatchObject({ success: true });
  expect(errors(d)).toEqual(["command:stuck: It has held the lane for 40 s; later commands go on without it"]);
});

test("prompt sections that never come, or are no text, are left out after 10 s", async () => {
  const section = (name: string, render: string) =>
    `m.definePromptSection({ name: "${name}", order: 1, stable: false, render: ${render} })`;
  const d = await start(
    `[${section("never", "() => new Promise(() => {})")}, ${section("number", "() => 5")}, ${section("text", 'async () => "kept"')}]`,
  );
  d.send({ type: "prompt", message: "hello" });
  const ended = () => d.frames.some((frame) => frame.type === "agent_end");
  for (let passed = 0; !ended(); passed += 500) {
    if (passed > 600_000) throw new Error("The run does not end");
    await vi.advanceTimersByTimeAsync(500);
    // What is read from files takes time of its own.
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(errors(d).sort()).toEqual([
    "prompt section never: It took longer than 10000 ms",
    "prompt section number: It must give a text, found number",
  ]);
  expect(await d.ask("get_state")).toMatchObject({ systemPrompt: expect.arrayContaining([expect.stringContaining("kept")]) });
});
