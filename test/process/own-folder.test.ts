// Whatever is dropped into the checkout's own extensions/ while the daemon runs gives its tool at once: one file, a folder with an
// index, a folder with a manifest of any family. On the built daemon, in a copy of the checkout.
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ask, prompt, textOf } from "../cases/_support.ts";
import { type Checkout, copyCheckout } from "../support/checkout.ts";
import { type DaemonProcess, startProcess } from "../support/process.ts";

let copy: Checkout;
let daemon: DaemonProcess;

beforeAll(async () => {
  copy = copyCheckout();
  daemon = startProcess({ command: copy.command });
  await ask(daemon, "get_state");
});
afterAll(async () => {
  await daemon.dispose();
  copy.remove();
});

const native = (tool: string, answer: string) => `import { defineTool, z } from "mortise/extension";
import { suffix } from "./_words.ts";
export default defineTool({ name: "${tool}", description: "d", params: z.object({}), run: () => "${answer}" + suffix });
`;
const words = 'export const suffix = "!";\n';
const factory = (imports: string) => (tool: string, answer: string) =>
  `${imports}
import { suffix } from "./_words.ts";
export default function (pi) {
  pi.registerTool({ name: "${tool}", description: "d", parameters: { type: "object", properties: {} }, execute: async () => "${answer}" + suffix });
}
`;

interface Form {
  /** Below extensions/; the last file is the one that is edited later. */
  files(tool: string, answer: string): Record<string, string>;
  /** What is removed at the end. */
  path: string;
}

const manifest = (folder: string, value: unknown, entry: (tool: string, answer: string) => string): Form => ({
  path: folder,
  files: (tool, answer) => ({
    [`${folder}/_words.ts`]: words,
    [`${folder}/src/_words.ts`]: words,
    [`${folder}/package.json`]: JSON.stringify(value),
    [`${folder}/src/main.ts`]: entry(tool, answer),
  }),
});

const FORMS: Readonly<Record<string, Form>> = {
  "one file": {
    path: "single.ts",
    files: (tool, answer) => ({ "single.ts": native(tool, answer).replace(/^.*_words.*\n/m, 'const suffix = "!";\n') }),
  },
  "one file for pi": {
    path: "single-pi.ts",
    files: (tool, answer) => ({
      "single-pi.ts": factory('import type { ExtensionAPI } from "@mariozechner/pi-coding-agent";')(tool, answer).replace(
        /^.*_words.*\n/m,
        'const suffix = "!";\n',
      ),
    }),
  },
  "a folder with index.ts": {
    path: "indexed",
    files: (tool, answer) => ({ "indexed/_words.ts": words, "indexed/index.ts": native(tool, answer) }),
  },
  "a folder of contributions": {
    path: "several",
    files: (tool, answer) => ({ "several/_words.ts": words, "several/one-tool.ts": native(tool, answer) }),
  },
  "a manifest with the key mortise": manifest("for-mortise", { name: "a", mortise: "./src/main.ts" }, native),
  "a manifest with the key mortise and a list": manifest(
    "listed",
    { name: "a", mortise: { extensions: ["./src/main.ts"] } },
    native,
  ),
  "a manifest with the key pi": manifest("for-pi", { name: "b", pi: { extensions: ["./src/main.ts"] } }, factory("")),
  "a manifest with the key omp": manifest("for-omp", { name: "c", omp: { extensions: ["./src/main.ts"] } }, factory("")),
  "a manifest with the key veyyon": manifest("for-veyyon", { name: "d", veyyon: { extensions: ["./src/main.ts"] } }, factory("")),
};

const put = (files: Record<string, string>) => {
  for (const [path, text] of Object.entries(files)) {
    const file = join(copy.path, "extensions", path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
};

const tools = async () =>
  ((await ask(daemon, "get_state")) as { dumpTools: { name: string }[] }).dumpTools.map((tool) => tool.name);

async function answerOf(tool: string): Promise<string> {
  const end = (await prompt(daemon, `call ${tool} {}`)).find((frame) => frame.type === "tool_execution_end");
  return textOf(end?.["result"]).trim();
}

/** Asks the daemon again and again. */
async function until(holds: () => Promise<boolean>): Promise<void> {
  for (const began = performance.now(); !(await holds()); ) {
    if (performance.now() - began > 5000) throw new Error("It did not come about within 5 s");
  }
}

it.each(Object.entries(FORMS))("%s, dropped into the checkout's own extensions/ while the daemon runs", async (_name, form) => {
  const tool = `tool_of_${form.path.replaceAll(/\W/g, "_")}`;
  expect(await tools()).not.toContain(tool);
  const from = daemon.frames.length;
  put(form.files(tool, "first"));
  await until(async () => (await tools()).includes(tool));
  expect(await answerOf(tool)).toBe("first!");
  expect((await tools()).filter((name) => name === tool)).toHaveLength(1);
  const { extensions } = (await ask(daemon, "get_extensions")) as {
    extensions: { path?: string; origin: string; state: string }[];
  };
  const units = extensions.filter((unit) => unit.path?.startsWith(join(copy.path, "extensions", form.path)));
  expect(units).toMatchObject([{ origin: "user", state: "active" }]);

  const [path, text] = Object.entries(form.files(tool, "second")).at(-1) ?? [];
  put({ [String(path)]: String(text) });
  await until(async () => (await answerOf(tool)) === "second!");

  rmSync(join(copy.path, "extensions", form.path), { recursive: true });
  await until(async () => !(await tools()).includes(tool));
  expect(daemon.frames.slice(from).filter((frame) => frame.type === "extension_error")).toEqual([]);
});
