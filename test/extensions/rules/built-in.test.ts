// The rules that come with mortise (`ttsr.builtinRules`, agent-semantics §5).
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { startDaemon, type TestDaemon } from "../../../core/testing.ts";
import type { Frame } from "../../../protocol/frame.ts";
import { calls, says, scriptedModel, scriptedProvider } from "../../support/scripted-provider.ts";

let daemon: TestDaemon | undefined;
afterEach(async () => {
  await daemon?.stop();
  daemon = undefined;
});

/** A model that writes `content` and, when it is cut off, writes something else. */
async function writes(path: string, content: string, files: Record<string, string> = {}) {
  const second = calls({ id: "b", name: "write", args: { path: "second.ts", content: "whole" } });
  const provider = scriptedProvider(calls({ id: "a", name: "write", args: { path, content } }), ({ messages }) =>
    messages.at(-1)?.role === "toolResult" ? says("Done") : second,
  );
  provider.push(says("Done"));
  const d = await startDaemon({ extensions: { scripted: [[provider.definition]] }, files });
  daemon = d;
  d.daemon.conversations.attached.select({ model: scriptedModel });
  return { d, frames: await d.prompt("Go"), written: (name: string) => readIf(join(d.cwd, name)) };
}
const readIf = (path: string) => (existsSync(path) ? readFileSync(path, "utf8") : undefined);
const told = (frames: readonly Frame[]) =>
  frames.filter(({ type }) => type === "ttsr_triggered").flatMap((frame) => frame["rules"] as Record<string, unknown>[]);

describe("elided-code", () => {
  it.each([
    "// ... existing code ...",
    "function a() {}\n\n// … rest of the file",
    "import os\n    # ... (the rest of the code stays) ...\n",
    "<!-- ... unchanged ... -->",
    "/* ...existing styles... */",
    "a\n// rest of the function stays the same\n",
    "a\n# existing code goes here\n",
    "-- ... previous statements ...",
  ])("cuts off a file with: %j", async (content) => {
    const { frames, written } = await writes("first.ts", content);
    expect(told(frames)).toMatchObject([{ name: "elided-code", path: "rule://elided-code" }]);
    expect([written("first.ts"), written("second.ts")]).toEqual([undefined, "whole"]);
  });

  it.each([
    ["a.ts", "// Existing code calls this with null, so it is allowed."],
    ["a.ts", "const [first, ...rest] = list; // ...and the rest follows"],
    ["a.ts", "call(...existing);\n// remaining: what is left over\n"],
    ["a.py", "# The rest of the file is generated.\nx = ...\n"],
    ["notes.md", "Then:\n\n// ... existing code ...\n"],
  ])("lets %s with %j through", async (path, content) => {
    const { frames, written } = await writes(path, content);
    expect(told(frames)).toEqual([]);
    expect(written(path)).toBe(content);
  });

  it.each([
    ["ttsr.builtinRules", { "config.yml": "ttsr: {builtinRules: false}" }],
    ["ttsr.disabledRules", { "config.yml": "ttsr: {disabledRules: [elided-code]}" }],
    [undefined, { "rules/elided-code.md": "---\ncondition: never-said\n---\nOurs." }],
  ])("is off by %s, or by a rule of the same name", async (setting, files) => {
    const { d, frames, written } = await writes("a.ts", "// ... existing code ...", files);
    expect(told(frames)).toEqual([]);
    expect(written("a.ts")).toBe("// ... existing code ...");
    const use = setting === undefined ? "watches the answers (user)" : `off by ${setting} (builtin)`;
    expect(await d.slash("/rules")).toBe(`elided-code  ${use}`);
  });
});
