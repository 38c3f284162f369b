// A unit of two files and an .mjs helper, in each place units come from: it appears, changes, survives broken saves and goes,
// all of it while an answer streams.
import { cpSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import type { Frame } from "../../protocol/frame.ts";
import { copyCheckout } from "../support/checkout.ts";
import { type DaemonProcess, type ProcessOptions, ROOT, startProcess } from "../support/process.ts";

const running: DaemonProcess[] = [];
const folders: string[] = [];
const start = (options?: ProcessOptions) => {
  const daemon = startProcess(options);
  running.push(daemon);
  return daemon;
};
afterEach(async () => {
  for (const daemon of running.splice(0)) await daemon.dispose();
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

const INDEX = `import { defineExtension, defineSlashCommand, defineTool, z } from "mortise/extension";
import { phrase } from "./phrase.ts";
const tool = defineTool({ name: "drop_in", description: "Answers with a phrase.", params: z.object({}), run: () => phrase() });
const slash = defineSlashCommand({ name: "drop-in", description: "The same by hand.", run: (ctx) => ctx.output(phrase()) });
export default defineExtension({ name: "drop-in", contributes: [tool, slash] });
`;
const PHRASE = `import { words } from "./words.mjs";
export const phrase = (): string => words.join(" ");
`;
const words = (version: string) => `export const words = ["version", "${version}"];\n`;

function writeUnit(folder: string): void {
  mkdirSync(folder, { recursive: true });
  // The entry last: before it is there the folder is no unit.
  writeFileSync(join(folder, "words.mjs"), words("1"));
  writeFileSync(join(folder, "phrase.ts"), PHRASE);
  writeFileSync(join(folder, "index.ts"), INDEX);
}

const isListing = (listed: boolean) => (frame: Frame) =>
  frame.type === "available_commands_update" && JSON.stringify(frame).includes('"drop-in"') === listed;

/** What /drop-in prints now. */
async function phraseOf(daemon: DaemonProcess): Promise<string> {
  const after = daemon.frames.length;
  daemon.send({ id: `d${after}`, type: "prompt", message: "/drop-in" });
  const output = await daemon.next((frame) => frame.type === "command_output", { after });
  return String(output["text"]);
}

async function untilPhrase(daemon: DaemonProcess, wanted: string): Promise<number> {
  const began = Date.now();
  while ((await phraseOf(daemon)) !== wanted) if (Date.now() - began > 15_000) throw new Error(`Never "${wanted}"`);
  return Date.now() - began;
}

async function tellsOneError(daemon: DaemonProcess, save: () => void): Promise<void> {
  const after = daemon.frames.length;
  save();
  const error = await daemon.next("extension_error", { after });
  expect(error).toMatchObject({ event: "load" });
  expect(String(error["extensionPath"])).toContain("drop-in");
  // Whatever comes late of the same save would have come by the time a prompt has gone through twice.
  expect(await phraseOf(daemon)).toBe("version 2");
  expect(await phraseOf(daemon)).toBe("version 2");
  expect(daemon.frames.slice(after).filter((frame) => frame.type === "extension_error")).toHaveLength(1);
}

async function walkThrough(daemon: DaemonProcess, folder: string, add: () => void): Promise<void> {
  // A turn that streams through everything below.
  daemon.send({ id: "long", type: "prompt", message: `delay 20\n${"word ".repeat(4000)}` });
  await daemon.next("message_update");
  const before = daemon.frames.length;
  add();
  await daemon.next(isListing(true), { after: before > 40 ? before : 0 });
  expect(daemon.frames.filter(isListing(true))).toHaveLength(1);
  expect(await phraseOf(daemon)).toBe("version 1");

  writeFileSync(join(folder, "words.mjs"), words("2"));
  await untilPhrase(daemon, "version 2");

  await tellsOneError(daemon, () => writeFileSync(join(folder, "phrase.ts"), `${PHRASE}const = 1;\n`));
  await tellsOneError(daemon, () =>
    writeFileSync(join(folder, "phrase.ts"), PHRASE.replaceAll(/\bwords\b(?!\.mjs)/g, "sentences")),
  );
  await tellsOneError(daemon, () => writeFileSync(join(folder, "index.ts"), ""));
  writeFileSync(join(folder, "index.ts"), INDEX);
  writeFileSync(join(folder, "phrase.ts"), PHRASE);
  writeFileSync(join(folder, "words.mjs"), words("3"));
  await untilPhrase(daemon, "version 3");

  const deleting = daemon.frames.length;
  rmSync(folder, { recursive: true });
  await daemon.next(isListing(false), { after: deleting });
  const state = await daemon.request("get_state");
  expect(JSON.stringify(state)).not.toContain('"drop_in"');
  expect(state["data"]).toMatchObject({ isStreaming: true });
  daemon.send({ type: "abort" });
  await daemon.next("agent_end");
  expect(await daemon.end()).toBe(0);
}

describe("A unit of several files", () => {
  it("lives its life in $MORTISE_HOME/extensions while a turn streams", async () => {
    const daemon = start();
    await daemon.request("get_state");
    const folder = join(daemon.home, "extensions/drop-in");
    await walkThrough(daemon, folder, () => writeUnit(folder));
  }, 60_000);

  it("lives its life in the package's own extensions/ while a turn streams", async () => {
    const checkout = copyCheckout();
    folders.push(checkout.path);
    const daemon = start({ command: checkout.command });
    await daemon.request("get_state");
    const folder = join(checkout.path, "extensions/drop-in");
    await walkThrough(daemon, folder, () => writeUnit(folder));
  }, 60_000);

  it("lives its life where -e points while a turn streams", async () => {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), "mortise-drop-in-")));
    folders.push(folder);
    const unit = join(folder, "drop-in");
    writeUnit(unit);
    const daemon = start({ args: ["-e", unit] });
    await daemon.request("get_state");
    await walkThrough(daemon, unit, () => {});
  }, 60_000);
});

describe("--dev", () => {
  it("reloads a built-in from its sources", async () => {
    const copy = realpathSync(mkdtempSync(join(tmpdir(), "mortise-dev-")));
    folders.push(copy);
    for (const name of ["core", "protocol", "extensions", "builtin-tools", "package.json", "tsconfig.json"]) {
      cpSync(join(ROOT, name), join(copy, name), { recursive: true });
    }
    symlinkSync(join(ROOT, "node_modules"), join(copy, "node_modules"));
    const tsx = join(ROOT, "node_modules/tsx/dist/cli.mjs");
    const command = [process.execPath, tsx, "--tsconfig", join(copy, "tsconfig.json"), join(copy, "core/main.ts")] as const;
    const daemon = start({ command, args: ["--dev"] });
    const describeLs = async () => {
      const state = await daemon.request("get_state");
      const { dumpTools } = state["data"] as { dumpTools: { name: string; description: string }[] };
      return dumpTools.find((tool) => tool.name === "ls")?.description;
    };
    // Every built-in is transformed first.
    await daemon.next("available_commands_update", { timeoutMs: 100_000 });
    expect(await describeLs()).toBeDefined();
    const file = join(copy, "builtin-tools/ls.ts");
    writeFileSync(file, readFileSync(file, "utf8").replace(/description:\s*(["'`])/, "description:\n    $1Freshly edited. "));
    const began = Date.now();
    while (!(await describeLs())?.startsWith("Freshly edited.")) {
      if (Date.now() - began > 15_000) throw new Error(`The edit was not seen: ${await describeLs()}`);
    }
    expect(await daemon.end()).toBe(0);
  }, 150_000);
});
