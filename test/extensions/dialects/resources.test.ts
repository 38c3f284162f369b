// `resources_discover`: skills and prompts of an extension are there like the user's own, follow its edits and go with it.
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import type { TestDaemon } from "../../../core/testing.ts";
import { answerOf, errors, notices, start } from "./_start.ts";

const skill = (name: string, text: string) => `---\nname: ${name}\ndescription: About ${name}\n---\n${text}\n`;
const files = {
  "extensions/unit/one/SKILL.md": skill("whales", "Sing like a whale"),
  "extensions/unit/more/birds/SKILL.md": skill("birds", "Sing like a bird"),
  "extensions/unit/prompts/greet.md": "Greet $1 warmly",
  "elsewhere/bow.md": "Bow to $1",
};
const unit = (version: number, answer: string) => `
import { join } from "node:path";
export default function (pi) {
  pi.on("session_start", (event, ctx) => ctx.ui.notify("start ${version}"));
  pi.on("resources_discover", (event, ctx) => {
    ctx.ui.notify("asked ${version} " + event.reason + " " + (event.cwd === ctx.cwd));
    return ${answer};
  });
}`;
const everything = `{ skillPaths: ["./one/SKILL.md", "./more", 5], promptPaths: ["./prompts", join(__dirname, "../../elsewhere/bow.md")], themePaths: ["./themes"] }`;

async function commandsOf(daemon: TestDaemon): Promise<string[]> {
  const { commands } = (await daemon.ask("get_available_commands")) as { commands: { name: string }[] };
  return commands.map((command) => command.name);
}

/** Waits for a listing of commands that fits. */
const listing = (daemon: TestDaemon, after: number, fits: (names: string) => boolean) =>
  daemon.next((frame) => frame.type === "available_commands_update" && fits(JSON.stringify(frame)), { after });

it("skills and prompts that an extension names are there, follow the disk and go with it", async () => {
  const daemon = await start({ "unit/index.ts": unit(1, everything) }, { files });
  try {
    await listing(daemon, 0, (names) => names.includes("skill:whales") && names.includes('"greet"'));
    expect(await commandsOf(daemon)).toEqual(expect.arrayContaining(["skill:whales", "skill:birds", "greet", "bow"]));
    expect(notices(daemon)).toEqual(["start 1", "asked 1 startup true"]);
    expect(answerOf(await daemon.prompt("/greet Ada"))).toContain("Greet Ada warmly");
    expect(answerOf(await daemon.prompt("/bow Ada"))).toContain("Bow to Ada");
    expect(answerOf(await daemon.prompt("/skill:whales"))).toContain("Sing like a whale");
    const { systemPrompt } = (await daemon.ask("get_state")) as { systemPrompt: string[] };
    expect(systemPrompt.join("\n")).toContain("About birds");

    await daemon.daemon.loader.watching;
    let from = daemon.frames.length;
    const added = join(daemon.home, "extensions/unit/more/fish/SKILL.md");
    mkdirSync(dirname(added), { recursive: true });
    writeFileSync(added, skill("fish", "Do not sing"));
    await listing(daemon, from, (names) => names.includes("skill:fish"));

    from = daemon.frames.length;
    rmSync(join(daemon.home, "extensions/unit"), { recursive: true });
    await listing(daemon, from, (names) => !names.includes("skill:whales") && !names.includes('"bow"'));
    expect(errors(daemon)).toEqual([]);
  } finally {
    await daemon.stop();
  }
});

it("a reload asks again and hides nothing meanwhile; what is not named any more goes", async () => {
  const slow = `await new Promise((resolve) => setTimeout(resolve, 100)).then(() => (${everything}))`;
  const daemon = await start({ "unit/index.ts": unit(1, everything) }, { files });
  try {
    await daemon.daemon.loader.watching;
    await listing(daemon, 0, (names) => names.includes("skill:whales") && names.includes('"greet"'));
    let from = daemon.frames.length;
    daemon.write("extensions/unit/index.ts", unit(2, slow).replace("(event, ctx) => {", "async (event, ctx) => {"));
    await daemon.next((frame) => frame["message"] === "asked 2 reload true", { after: from });
    await daemon.daemon.loader.settled();
    expect(await commandsOf(daemon)).toContain("skill:whales");
    await new Promise((resolve) => setTimeout(resolve, 200));
    const updates = daemon.frames.slice(from).filter((frame) => frame.type === "available_commands_update");
    expect(updates.filter((frame) => !JSON.stringify(frame).includes("skill:whales"))).toEqual([]);

    from = daemon.frames.length;
    daemon.write("extensions/unit/index.ts", unit(3, `{ skillPaths: ["./more"] }`));
    await listing(daemon, from, (names) => !names.includes("skill:whales") && !names.includes('"greet"'));
    expect(await commandsOf(daemon)).toContain("skill:birds");
    expect(errors(daemon)).toEqual([]);
  } finally {
    await daemon.stop();
  }
});

it("the user's own skill comes before an extension's of the same name", async () => {
  const daemon = await start(
    { "unit/index.ts": unit(1, everything) },
    { files: { ...files, "skills/whales/SKILL.md": skill("whales", "My own whale") } },
  );
  try {
    await listing(daemon, 0, (names) => names.includes("skill:birds"));
    expect(answerOf(await daemon.prompt("/skill:whales"))).toContain("My own whale");
  } finally {
    await daemon.stop();
  }
});
