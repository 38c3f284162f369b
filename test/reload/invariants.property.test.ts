// extensions.md §4.9 over a whole daemon: random edits, removals, calls and dialogs. Of the invariants 1, 2, 3 and 6 see
// test/core/loader/lifecycle.property.test.ts; here 4, 5, 7, 8, 9, 10 and 12.
import { rmSync } from "node:fs";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { TestDaemon } from "../../core/testing.ts";
import type { Frame } from "../../protocol/frame.ts";
import { callTool, resultOf, until, useDaemons } from "./_support.ts";

const start = useDaemons();
const RUNS = process.env["MORTISE_SOAK"] === undefined ? 4 : 200;

const op = fc.oneof(
  { weight: 4, arbitrary: fc.constant("edit" as const) },
  { weight: 2, arbitrary: fc.constant("break" as const) },
  { weight: 1, arbitrary: fc.constant("storm" as const) },
  { weight: 1, arbitrary: fc.constant("toggle" as const) },
  { weight: 1, arbitrary: fc.constant("remove" as const) },
  { weight: 3, arbitrary: fc.constant("call" as const) },
  { weight: 2, arbitrary: fc.constant("dialog" as const) },
  { weight: 1, arbitrary: fc.constant("gate" as const) },
);

/** Answers with its version twice, a while apart, so that a mixture would show. */
const source = (n: number) => `import { defineTool, defineSlashCommand, z } from "mortise/extension";
const version = "v${n}";
export default [
  defineTool({ name: "ver", description: "d", params: z.object({}), async run() { const before = version; await new Promise((r) => setTimeout(r, 3)); return before + version; } }),
  defineSlashCommand({ name: "asks", description: "d", async run(ctx) { ctx.output(String(await ctx.ui.confirm({ title: version, message: "m" }))); } }),
];
`;
const gate = `import { defineHook, toolDecide } from "mortise/extension";
export default defineHook(toolDecide, ({ toolName }) => (toolName === "ls" ? { block: true, reason: "gate" } : undefined));
`;

const version = async (daemon: TestDaemon) => {
  const entry = daemon.daemon.kernel.registry.get("tool", "ver");
  if (entry === undefined) return undefined;
  // A call holds its generation; without that the timer inside would go with it and the call would never end.
  const release = entry.scope.lease();
  try {
    return await entry.definition.run({} as never, {});
  } finally {
    release();
  }
};

test("invariants 4, 5, 7, 8, 9, 10 and 12 hold for any order of edits, calls and dialogs", { timeout: 600_000 }, async () => {
  const daemon = await start({ options: { mode: "rpc-ui" }, answers: { confirm: { confirmed: true } } });
  const { registry } = daemon.daemon.kernel;
  let n = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(op, { minLength: 3, maxLength: 12 }), async (ops) => {
      const path = daemon.write("extensions/ver.ts", source(++n));
      let good = n;
      let enabled = true;
      const answers = (wanted: number | undefined) =>
        until(
          `version ${wanted}`,
          async () => (await version(daemon)) === (wanted === undefined ? undefined : `v${wanted}v${wanted}`),
        );
      await answers(good);
      for (const one of ops) {
        const tools = () => JSON.stringify(registry.list("tool").map(({ name, definition }) => [name, definition.description]));
        const before = tools();
        if (one === "edit" || one === "storm") {
          for (let i = 0; i < (one === "storm" ? 8 : 1); i++) daemon.write("extensions/ver.ts", source(++n));
          good = n;
          // 8: the last content wins. 10: the same schemas are the same list.
          if (enabled) await answers(good);
          if (enabled) expect(tools()).toBe(before);
        } else if (one === "break" && enabled) {
          const entry = registry.get("tool", "ver");
          const after = daemon.frames.length;
          // Another place each time: the same error is said once a second.
          daemon.write("extensions/ver.ts", `${"\n".repeat(++n)}export default (`);
          await daemon.next((frame) => frame.type === "extension_error" && frame["extensionPath"] === path, { after });
          // 5: a failed reload changes nothing.
          expect(registry.get("tool", "ver")).toBe(entry);
          daemon.write("extensions/ver.ts", source(++n));
          good = n;
          await answers(good);
        } else if (one === "toggle") {
          enabled = !enabled;
          await daemon.ask("set_extension_enabled", { extensionId: "ver", enabled });
          await answers(enabled ? good : undefined);
        } else if (one === "remove" && enabled) {
          rmSync(path);
          await answers(undefined);
          daemon.write("extensions/ver.ts", source(++n));
          good = n;
          await answers(good);
        } else if (one === "call" && enabled) {
          // 4: one generation, one answer.
          const called = callTool(daemon, "ver");
          daemon.write("extensions/ver.ts", source(++n));
          good = n;
          expect(await called).toMatch(/^(v\d+)\1$/);
          await answers(good);
        } else if (one === "dialog" && enabled) {
          await daemon.prompt("/asks");
        } else if (one === "gate") {
          const gatePath = daemon.write("extensions/gate.ts", gate);
          await until("the gate", () => registry.all("hook").some((entry) => entry.scope.owner.id === gatePath));
          // 12: whatever else is there, a block stays one.
          const frames = await daemon.prompt("call ls {}");
          expect(resultOf(frames), JSON.stringify(frames)).toBe("gate");
        }
      }
      // 7: every dialog got one answer or was cancelled.
      await until("no dialog is open", () => daemon.daemon.kernel.requests.size === 0);
      if (!enabled) await daemon.ask("set_extension_enabled", { extensionId: "ver", enabled: true });
    }),
    { numRuns: RUNS, endOnFailure: true },
  );
  // 9: every error names a file that was there.
  const named = (frame: Frame) => String(frame["extensionPath"]).startsWith(`${daemon.home}/extensions/`);
  expect(daemon.frames.filter((frame) => frame.type === "extension_error" && !named(frame))).toEqual([]);
});
