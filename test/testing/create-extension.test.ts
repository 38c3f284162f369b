// `mortise create-extension`: what it writes is loaded by the built daemon, passes its own test and its own types.
import { type SpawnSyncReturns, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { BIN, ROOT, startProcess } from "../support/process.ts";

let work: string;
let folder: string;

function run(command: string, args: readonly string[], cwd: string): SpawnSyncReturns<string> {
  return spawnSync(command, args, { cwd, encoding: "utf8", timeout: 60_000 });
}

beforeAll(() => {
  work = realpathSync(mkdtempSync(join(tmpdir(), "mortise-scaffold-")));
  folder = join(work, "word-tools");
});
afterAll(() => rmSync(work, { recursive: true, force: true }));

it("writes a folder and says what to do with it", () => {
  const made = run(process.execPath, [BIN, "create-extension", "word-tools"], work);
  expect(made).toMatchObject({ status: 0, stderr: "" });
  expect(made.stdout).toContain("word-tools.test.ts");
  const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as { devDependencies: Record<string, string> };
  expect(manifest.devDependencies["mortise"]).toBe(`file:${ROOT.replace(/\/$/, "")}`);
});

it("refuses a folder that exists, and names it cannot use", () => {
  expect(run(process.execPath, [BIN, "create-extension", "word-tools"], work)).toMatchObject({
    status: 1,
    stderr: expect.stringContaining("exists"),
  });
  for (const args of [[], ["../up"], ["Upper"], ["a", "b"]]) {
    expect(run(process.execPath, [BIN, "create-extension", ...args], work)).toMatchObject({
      status: 1,
      stderr: expect.stringContaining("Usage"),
    });
  }
});

it("is loaded with -e by the built daemon", async () => {
  const daemon = startProcess({ args: ["-e", folder] });
  try {
    await daemon.request("prompt", { message: 'call word_tools {"name": "Ada"}' });
    const end = await daemon.next("tool_execution_end");
    expect(JSON.stringify(end["result"])).toContain("Hello, Ada!");
    await daemon.next("agent_end");
    await daemon.request("prompt", { message: "/word-tools Bo" });
    expect(await daemon.next("command_output")).toMatchObject({ text: "Hello, Bo!" });
    expect(await daemon.end()).toBe(0);
    expect(daemon.frames.filter((frame) => frame.type === "extension_error")).toEqual([]);
  } finally {
    await daemon.dispose();
  }
});

it("passes its own test and its own types", { timeout: 120_000 }, () => {
  // As `npm install` would link them, with a build and types that are as new as the sources.
  const linked = join(folder, "node_modules", "mortise");
  cpSync(dirname(BIN), join(linked, "dist"), { recursive: true });
  // `npm ci` prints the types with the build; the one that tests make of newer sources has none.
  if (!existsSync(join(linked, "dist/types/core/extension.d.ts"))) {
    const printed = run(process.execPath, [join(ROOT, "build.mjs"), "--types-only", "--outdir", join(linked, "dist")], ROOT);
    expect(printed).toMatchObject({ status: 0, stdout: "", stderr: "" });
  }
  cpSync(join(ROOT, "package.json"), join(linked, "package.json"));
  symlinkSync(join(ROOT, "node_modules"), join(linked, "node_modules"));
  for (const name of ["tsx", "@types"]) symlinkSync(join(ROOT, "node_modules", name), join(folder, "node_modules", name));
  const tested = run("npm", ["test", "--silent"], folder);
  expect(tested.stdout + tested.stderr).toMatch(/# pass 3\b/);
  expect(tested.status).toBe(0);

  const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
  expect(run(process.execPath, [tsc], folder)).toMatchObject({ stdout: "", status: 0 });
  // What built-ins merge into the door is typed: a wrong use is found.
  writeFileSync(join(folder, "wrong.ts"), wrongUse);
  expect(run(process.execPath, [tsc], folder).stdout).toContain("'boolean' is not assignable to type 'number'");
});

const wrongUse = `import { defineHook, toolDecide } from "mortise/extension";

export default defineHook(toolDecide, async (call, ctx) => {
  const answer: number = await ctx.ui.confirm({ title: "Run it?", message: call.toolName });
  return answer ? undefined : { block: true, reason: "The user said no" };
});
`;
