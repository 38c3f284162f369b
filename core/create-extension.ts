// `mortise create-extension NAME`: a folder with an extension, its test and a README, ready to be edited.
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** Writes the scaffold under `cwd` and tells what to do next. Returns the exit code. */
export async function createExtension(args: readonly string[], cwd: string): Promise<number> {
  const [name, ...rest] = args;
  if (name === undefined || rest.length > 0 || !/^[a-z][a-z0-9-]*$/.test(name)) {
    process.stderr.write("Usage: mortise create-extension NAME (lower case letters, digits and dashes)\n");
    return 1;
  }
  const folder = join(cwd, name);
  if (existsSync(folder)) {
    process.stderr.write(`mortise: "${folder}" exists; choose another name or remove it\n`);
    return 1;
  }
  await mkdir(folder);
  const files = scaffold(name);
  for (const [file, text] of Object.entries(files)) await writeFile(join(folder, file), text);
  process.stdout.write(
    `Created ${folder}:\n${Object.keys(files)
      .map((file) => `  ${file}`)
      .join(
        "\n",
      )}\n\nTry it: mortise --mode rpc -e ${folder} --model offline/echo\nInstall it: move the folder to ~/.mortise/extensions/\n`,
  );
  return 0;
}

function scaffold(name: string): Record<string, string> {
  const tool = name.replaceAll("-", "_");
  return {
    "package.json": `${JSON.stringify({ name, version: "0.1.0", type: "module", mortise: "./index.ts", scripts: { test: "node --import tsx --test *.test.ts" }, devDependencies: { mortise: "*", tsx: "*" } }, null, 2)}\n`,
    "index.ts": `import { defineExtension, defineSlashCommand, defineTool, z } from "mortise/extension";

/** What the model can call. */
const greet = defineTool({
  name: "${tool}",
  description: "Greets somebody by name.",
  params: z.object({ name: z.string().describe("Whom to greet") }),
  run: (_ctx, { name }) => \`Hello, \${name}!\`,
});

/** What a person can type: /${name} Ada */
const command = defineSlashCommand({
  name: "${name}",
  description: "Greets somebody",
  argumentHint: "<name>",
  async run(ctx, args) {
    const name = args || (await ctx.ui.input({ title: "Whom?" })) || "world";
    ctx.output(\`Hello, \${name}!\`);
  },
});

export default defineExtension({ name: "${name}", contributes: [greet, command] });
`,
    [`${name}.test.ts`]: `import assert from "node:assert/strict";
import test from "node:test";
import { startDaemon } from "mortise/testing";

test("the tool greets", async () => {
  const daemon = await startDaemon({ options: { extension: [import.meta.dirname] } });
  try {
    const frames = await daemon.prompt('call ${tool} {"name": "Ada"}');
    const end = frames.find((frame) => frame.type === "tool_execution_end");
    assert.equal(JSON.stringify(end?.result).includes("Hello, Ada!"), true);
  } finally {
    await daemon.stop();
  }
});
`,
    "README.md": `# ${name}

An extension for mortise. \`index.ts\` is read as it is; save it and the next call runs the new version.

    npm install && npm test
`,
  };
}
