// What an author is told of a failure: his file, the right line, and nothing of how the daemon came to run it.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Frame } from "../../protocol/frame.ts";
import { type DaemonProcess, startProcess } from "../support/process.ts";

const door = 'import * as m from "mortise/extension";\n';

/** File → its text, what is reported of it, and the places its stack names, innermost first. */
const units: Record<string, { text: string; error: RegExp; places: string[] }> = {
  "syntax.ts": { text: "const a = 1;\nconst b = ;\n", error: /Unexpected token/, places: ["syntax.ts:2"] },
  "top.ts": {
    text: "function boom(): never {\n  throw new Error('at the top');\n}\n\nexport default boom();\n",
    error: /at the top/,
    places: ["top.ts:2", "top.ts:5"],
  },
  "absent.ts": {
    text: "// first line\nimport { x } from './nowhere.ts';\nexport default x;\n",
    error: /Cannot find module ".\/nowhere.ts"/,
    places: ["absent.ts:2"],
  },
  "unnamed.ts": {
    text: "\n\nimport { absent } from './_data.json';\nexport default absent;\n",
    error: /does not provide an export named "absent"/,
    places: ["unnamed.ts:3"],
  },
  "data.ts": { text: "import x from './_broken.json';\nexport default x;\n", error: /_broken.json/, places: ["_broken.json:2"] },
  "folder/index.ts": {
    text: "import { deep } from './lib/deep.ts';\nexport default deep();\n",
    error: /deep down/,
    places: ["folder/lib/deep.ts:2", "folder/index.ts:2"],
  },
  "nothing.ts": { text: "export const a = 1;\n", error: /nothing.ts must export a definition/, places: [] },
  "setup.ts": {
    text: `${door}export default m.defineExtension({ name: "s", setup() {\n  throw new Error("in set-up");\n} });\n`,
    error: /in set-up/,
    places: ["setup.ts:3"],
  },
  "factory.ts": {
    text: `import type { ExtensionAPI } from "@mariozechner/pi-coding-agent";\nexport default (pi: ExtensionAPI) => {\n  pi.on("agent_start", () => {\n    throw new Error("in a handler");\n  });\n};\n`,
    error: /in a handler/,
    places: ["factory.ts:4"],
  },
  "hook.ts": {
    text: `${door}export default m.defineHook(m.toolDecide, async () => {\n  await Promise.resolve();\n  throw new Error("in a gate");\n});\n`,
    error: /in a gate/,
    places: ["hook.ts:4"],
  },
  "timer.ts": {
    text: `${door}export default m.defineExtension({ name: "t", setup() {\n  setTimeout(() => {\n    JSON.parse("{");\n  }, 1);\n} });\n`,
    error: /JSON/,
    places: ["<anonymous>", "timer.ts:4"],
  },
  "late.ts": {
    text: `${door}export default m.defineTool({ name: "late", description: "", params: m.z.object({}), run() {\n  const late = async () => {\n    await null;\n    throw new Error("late in a tool");\n  };\n  void late();\n  throw new Error("in a tool");\n} });\n`,
    error: /late in a tool/,
    places: ["late.ts:5"],
  },
};

let daemon: DaemonProcess;
beforeAll(async () => {
  const files = Object.entries(units).map(([name, { text }]) => [`extensions/${name}`, text]);
  daemon = startProcess({
    files: {
      ...Object.fromEntries(files),
      "extensions/_data.json": "{}",
      "extensions/_broken.json": '{\n  "a": 1,,\n}',
      "extensions/folder/lib/deep.ts": "export function deep(): never {\n  throw new TypeError('deep down');\n}\n",
    },
  });
  await daemon.next("available_commands_update");
});
afterAll(() => daemon.dispose());

async function call(tool: string): Promise<Frame> {
  const after = daemon.frames.length;
  await daemon.request("prompt", { message: `call ${tool} {}` });
  const end = await daemon.next("tool_execution_end", { after });
  await daemon.next("agent_end", { after });
  return end;
}

describe("The stack of an extension's error", () => {
  it("has the author's lines in the author's files, and no other", { timeout: 30_000 }, async () => {
    await call("late");
    await daemon.request("set_extension_enabled", { extensionId: "hook", enabled: false });
    const end = await call("late");
    expect(JSON.stringify(end["result"])).toContain('"in a tool"');
    for (const [name, { error, places }] of Object.entries(units)) {
      const isIts = (frame: Frame) => frame.type === "extension_error" && error.test(String(frame["error"]));
      const frame = await daemon.next(isIts, { after: 0 });
      const [head, ...lines] = String(frame["stack"]).split("\n");
      expect(head, name).toContain(frame["error"]);
      expect(lines.length, String(frame["stack"])).toBe(places.length);
      for (const [index, place] of places.entries()) expect(lines[index], name).toContain(place);
    }
  });
});
