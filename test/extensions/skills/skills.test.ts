import { rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { type Context, Settings, Skills, SlashCommands, type SlashContext } from "mortise/extension";
import { afterEach, expect, test } from "vitest";
import knownSettings from "../../../extensions/settings/known-settings.ts";
import settings from "../../../extensions/settings/settings.ts";
import skillScheme from "../../../extensions/skills/skill.ts";
import skills from "../../../extensions/skills/skills.ts";
import slashCommands from "../../../extensions/slash/slash-commands.ts";
import { Bench } from "../settings/_bench.ts";

const benches: Bench[] = [];
afterEach(async () => {
  for (const bench of benches.splice(0)) await bench.close();
});

const PDF = "---\nname: pdf\ndescription: Works with\n  PDF files\n---\n\n# How\nUse the tool.\n";

async function start(files: Record<string, string> = { "home/skills/pdf-tools/SKILL.md": PDF }) {
  const bench = await Bench.make(files);
  benches.push(bench);
  await bench.launch().load([settings, knownSettings, slashCommands, skills, skillScheme], "builtin", "builtin:skills");
  bench.ctx.use(SlashCommands).announce(true);
  return bench;
}
const commandNames = (bench: Bench) =>
  bench.ctx
    .use(SlashCommands)
    .listing()
    .map((each) => each.name);

/** A conversation that records what is submitted. */
function recorder(result: Promise<void> = Promise.resolve()) {
  const submitted: unknown[] = [];
  const submitCustom = (...args: unknown[]) => {
    submitted.push(args);
    return result;
  };
  return { submitted, conversation: { submitCustom } };
}
async function invoke(bench: Bench, text: string, failLate: (error: unknown) => void = () => {}) {
  const match = bench.ctx.use(SlashCommands).match(text);
  const invocation = { id: "r1", command: "prompt", agentInvoked: false, pending: new Set<Promise<unknown>>() };
  const ctx = Object.assign(Object.create(bench.ctx.derive({ invocation })) as Context, { output: () => {} }) as SlashContext;
  Object.defineProperty(ctx, "failLate", { value: failLate });
  await match?.definition.run(ctx, match.args);
  return invocation;
}

test("skills are listed by name and description, project before user, and without a description not at all", async () => {
  const bench = await start({
    "home/skills/pdf-tools/SKILL.md": PDF,
    "home/skills/deploy/SKILL.md": "---\ndescription: user deploy\n---\nx",
    "project/.mortise/skills/deploy/SKILL.md": "---\ndescription: project deploy\nhide: true\n---\nx",
    "home/skills/none/SKILL.md": "no head",
    "home/skills/odd/SKILL.md": "---\nname: a b\ndescription: x\n---\n",
    "home/skills/empty/readme.md": "",
  });
  expect(bench.ctx.use(Skills).list()).toMatchObject([
    { name: "deploy", description: "project deploy", origin: "project", hidden: true },
    { name: "pdf", description: "Works with PDF files", origin: "user", hidden: false },
  ]);
  expect(bench.ctx.use(SlashCommands).listing()).toEqual([
    { name: "skill:deploy", description: "project deploy", input: { hint: "arguments" }, source: "skill" },
    { name: "skill:pdf", description: "Works with PDF files", input: { hint: "arguments" }, source: "skill" },
  ]);
  expect(bench.logged.filter((line) => line.includes("is ignored"))).toHaveLength(2);
});

test("/skill:name sends the instructions as a message of the user", async () => {
  const bench = await start();
  const { submitted, conversation } = recorder();
  bench.conversation = conversation;
  const invocation = await invoke(bench, "/skill:pdf merge 'a b'");
  expect(invocation.agentInvoked).toBe(true);
  const file = join(bench.home, "skills/pdf-tools/SKILL.md");
  expect(submitted).toEqual([
    [
      {
        customType: "skill-prompt",
        content: expect.stringMatching(/<skill name="pdf">\n# How\nUse the tool\.\n<\/skill>\n\n[^\n]*merge 'a b'$/),
        display: true,
        attribution: "user",
        details: { name: "pdf", path: file, args: "merge 'a b'", lineCount: 2 },
      },
      { triggerTurn: true, delivery: "steer" },
    ],
  ]);
});

test("semantics 11: a slow dispatch does not hold the answer, its refusal comes late, and an unreadable skill fails at once", async () => {
  const bench = await start();
  let refuse: (error: unknown) => void = () => {};
  bench.conversation = recorder(
    new Promise<void>((_resolve, reject) => {
      refuse = reject;
    }),
  ).conversation;
  const late = new Promise<unknown>((resolve) => {
    void invoke(bench, "/skill:pdf", resolve).then((invocation) => {
      expect(invocation.agentInvoked).toBe(true);
      refuse(new Error("No model selected."));
    });
  });
  expect(await late).toMatchObject({ message: "No model selected." });
  const match = bench.ctx.use(SlashCommands).match("/skill:pdf");
  await rm(join(bench.home, "skills/pdf-tools/SKILL.md"));
  await expect(Promise.resolve(match?.definition.run(Object.create(bench.ctx), ""))).rejects.toThrow(/^Cannot read skill "pdf"/);
});

test("new skills, edits and removals go live", async () => {
  const bench = await start();
  let after = bench.frames.length;
  await bench.write("project/.mortise/skills/lint/SKILL.md", "---\ndescription: Lints\n---\nx");
  await bench.frame("available_commands_update", (frame) => JSON.stringify(frame).includes("skill:lint"), after);
  after = bench.frames.length;
  await bench.write("project/.mortise/skills/lint/SKILL.md", "---\ndescription: Lints better\n---\nx");
  await bench.frame("available_commands_update", (frame) => JSON.stringify(frame).includes("better"), after);
  after = bench.frames.length;
  await rm(join(bench.cwd, ".mortise/skills/lint"), { recursive: true });
  await bench.frame("available_commands_update", (frame) => !JSON.stringify(frame).includes("skill:lint"), after);
  expect(commandNames(bench)).toEqual(["skill:pdf"]);
});

test("settings take the slash commands away and bring them back", async () => {
  const bench = await start({ "home/skills/pdf/SKILL.md": PDF, "home/config.yml": "skills: {enableSkillCommands: false}\n" });
  expect(commandNames(bench)).toEqual([]);
  bench.ctx.use(Settings).setRuntime("skills.enableSkillCommands", true);
  expect(commandNames(bench)).toEqual(["skill:pdf"]);
});

test("skill:// reads instructions, files and folders, and stays inside", async () => {
  const bench = await start({
    "home/skills/pdf/SKILL.md": PDF,
    "home/skills/pdf/ref/a b.txt": "inner",
    "home/skills/pdf/bin.dat": "a\0b",
    "home/secret.txt": "secret",
  });
  await symlink(join(bench.home, "secret.txt"), join(bench.home, "skills/pdf/link.txt"));
  const read = (url: string) => skillScheme.read(url, bench.ctx);
  expect(await read("skill://pdf")).toEqual({ content: PDF, contentType: "text/markdown", immutable: false });
  expect(await read("skill://pdf/")).toMatchObject({ content: PDF });
  expect(await read("skill://pdf/ref/a%20b.txt")).toMatchObject({ content: "inner", contentType: "text/plain" });
  expect(await read("skill://pdf/ref")).toMatchObject({ content: "a b.txt" });
  for (const path of ["../../secret.txt", "ref/../../../secret.txt", "%2e%2e/%2e%2e/secret.txt", "link.txt"]) {
    await expect(read(`skill://pdf/${path}`)).rejects.toThrow("leads out of the folder");
  }
  await expect(read("skill://pdf//etc/passwd")).rejects.toThrow(/^Cannot read "skill:/);
  await expect(read("skill://nope/x")).rejects.toThrow('no skill is called "nope". Skills: pdf');
  await expect(read("skill://pdf/missing")).rejects.toThrow("ENOENT");
  await expect(read("skill://pdf/%zz")).rejects.toThrow("hexadecimal");
  await expect(read("skill://pdf/bin.dat")).rejects.toThrow("it is no text");
});
