// `mortise create-extension NAME`: a folder with an extension, its test and a README, ready to be edited.
import { existsSync, readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";

const USAGE = "Usage: mortise create-extension NAME (lower case letters, digits and dashes, beginning with a letter)";

/** Writes the scaffold under `cwd` and tells what to do next. Returns the exit code. */
export async function createExtension(args: readonly string[], cwd: string): Promise<number> {
  const [name, ...rest] = args;
  if (name === undefined || rest.length > 0 || !/^[a-z][a-z0-9-]{0,60}$/.test(name)) {
    process.stderr.write(`${USAGE}\n`);
    return 1;
  }
  const folder = join(cwd, name);
  if (existsSync(folder)) {
    process.stderr.write(`mortise: "${folder}" exists; choose another name or remove it\n`);
    return 1;
  }
  const files = scaffold(name);
  await mkdir(folder);
  for (const [file, text] of Object.entries(files)) await writeFile(join(folder, file), text);
  process.stdout.write(`Created ${folder}:
${Object.keys(files)
  .map((file) => `  ${file}`)
  .join("\n")}

Try it:     mortise --mode rpc --model offline/echo -e ${folder}
Test it:    cd ${name} && npm install && npm test
Install it: move the folder to ~/.mortise/extensions/
`);
  return 0;
}

const Manifest = z.object({ name: z.string() });

/** The package this runs from: one up from `core/`, or from `dist/` and its chunks. */
function packageRoot(): string {
  for (let folder = dirname(fileURLToPath(import.meta.url)); folder !== dirname(folder); folder = dirname(folder)) {
    const manifest = join(folder, "package.json");
    if (existsSync(manifest) && Manifest.parse(JSON.parse(readFileSync(manifest, "utf8"))).name === "mortise") return folder;
  }
  throw new Error("The package.json of mortise was not found beside its code");
}

function json(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

/** File name → text. */
function scaffold(name: string): Record<string, string> {
  const tool = name.replaceAll("-", "_");
  return {
    "package.json": json({
      name,
      version: "0.1.0",
      type: "module",
      mortise: "./index.ts",
      scripts: { test: "node --import tsx --test *.test.ts", types: "tsc" },
      // Types and the test kit only: at run time the daemon hands its own `mortise/extension` to the extension.
      devDependencies: {
        "@types/node": ">=20.16",
        mortise: `file:${packageRoot()}`,
        tsx: "^4.20.0",
        typescript: ">=5.8",
      },
    }),
    "tsconfig.json": json({
      compilerOptions: {
        target: "es2023",
        module: "nodenext",
        strict: true,
        noUncheckedIndexedAccess: true,
        allowImportingTsExtensions: true,
        verbatimModuleSyntax: true,
        types: ["node"],
        skipLibCheck: true,
        noEmit: true,
      },
      include: ["*.ts"],
    }),
    "index.ts": extensionText(name, tool),
    [`${name}.test.ts`]: testText(name, tool),
    "README.md": readmeText(name),
    ".gitignore": "node_modules/\n",
  };
}

const extensionText = (
  name: string,
  tool: string,
) => `import { defineExtension, defineSlashCommand, defineTool, z } from "mortise/extension";

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
`;

const testText = (name: string, tool: string) => `import assert from "node:assert/strict";
import { after, test } from "node:test";
import { checkLeaks, startDaemon } from "mortise/testing";

// A whole daemon in this process, with this extension and an answer for the dialog.
const daemon = await startDaemon({
  options: { extension: [import.meta.dirname] },
  answers: { input: { value: "Grace" } },
});
after(() => daemon.stop());

test("the model can call the tool", async () => {
  const { text, isError } = await daemon.callTool("${tool}", { name: "Ada" });
  assert.equal(text, "Hello, Ada!");
  assert.equal(isError, false);
});

test("a person can type the command, and is asked for what is missing", async () => {
  assert.equal(await daemon.slash("/${name} Ada"), "Hello, Ada!");
  assert.equal(await daemon.slash("/${name}"), "Hello, Grace!");
});

test("reloads leave nothing behind", async () => {
  await checkLeaks(daemon, "${name}", { reloads: 10 });
});
`;

const readmeText = (name: string) => `# ${name}

An extension for mortise. The daemon reads \`index.ts\` as it is, without a build: save it, and the next call runs the new version.

    mortise --mode rpc --model offline/echo -e .    # try it without installing it
    npm install && npm test                         # its test, in a daemon of its own
    npm run types                                   # its types

To install it, put this folder into \`~/.mortise/extensions/\` (for you) or \`.mortise/extensions/\` of a project (for the project,
once it is trusted).

\`package.json\` takes mortise from where it is installed on this machine, for types and tests only; before you publish the folder,
put a version there.
`;
