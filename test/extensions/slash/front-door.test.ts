// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the syntax of templates
// Settings, prompts, skills and slash commands together, through a whole daemon.
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type StartOptions, startDaemon, type TestDaemon } from "mortise/testing";
import { afterEach, expect, test } from "vitest";

const daemons: TestDaemon[] = [];
afterEach(async () => {
  for (const daemon of daemons.splice(0)) await daemon.stop();
});
async function start(options: StartOptions = {}): Promise<TestDaemon> {
  const daemon = await startDaemon(options);
  daemons.push(daemon);
  return daemon;
}
const outputs = (frames: readonly { type: string; [field: string]: unknown }[]) =>
  frames.filter((frame) => frame.type === "command_output").map((frame) => frame["text"]);
const names = (listing: unknown) => (listing as { name: string }[]).map((each) => each.name);

/** The messages of a run that the model answered, as text. */
function userText(frames: readonly { type: string; [field: string]: unknown }[]): string {
  return JSON.stringify(frames.filter((frame) => frame.type === "message_end").at(0));
}

test("the listing is the first thing a host hears, and get_available_commands says the same", async () => {
  const daemon = await start({
    files: { "prompts/review.md": "Review $1", "skills/pdf/SKILL.md": "---\ndescription: PDF\n---\nx" },
  });
  const [first] = daemon.frames;
  expect(first?.type).toBe("available_commands_update");
  const listed = names(first?.["commands"]);
  expect(listed).toEqual(expect.arrayContaining(["help", "model", "thinking", "settings", "reload", "skill:pdf", "review"]));
  expect(listed.indexOf("help")).toBeLessThan(listed.indexOf("skill:pdf"));
  expect(listed.indexOf("skill:pdf")).toBeLessThan(listed.indexOf("review"));
  expect(await daemon.ask("get_available_commands")).toEqual({ commands: first?.["commands"] });
  expect(daemon.frames.filter((frame) => frame.type === "available_commands_update")).toHaveLength(1);
});

test("a prompt file goes to the model filled in, an unknown word with a slash as it is", async () => {
  const daemon = await start({ files: { "cwd/.mortise/commands/greet.md": "Say hello to $1 from ${@:2}" } });
  expect(userText(await daemon.prompt('/greet "Ada L" the two of us'))).toContain("Say hello to Ada L from the two of us");
  expect(userText(await daemon.prompt("/usr/bin/env node"))).toContain("/usr/bin/env node");
});

test("/skill:name starts a run and is answered with agentInvoked true", async () => {
  const daemon = await start({ files: { "skills/pdf/SKILL.md": "---\ndescription: PDF\n---\nUse pdftotext." } });
  const frames = await daemon.prompt("/skill:pdf page 3");
  const response = frames.find((frame) => frame.type === "response");
  expect(response?.["data"]).toEqual({ agentInvoked: true });
  expect(JSON.stringify(frames.filter((frame) => frame.type === "message_end"))).toContain("Use pdftotext.");
  expect(frames.at(-1)?.type).toBe("agent_end");
});

test("/model tells the host what changed before the response", async () => {
  const daemon = await start();
  const frames = await daemon.prompt("/model offline/echo");
  expect(frames.map((frame) => frame.type).filter((type) => type !== "model_changed")).toEqual([
    "command_output",
    "session_info_update",
    "config_update",
    "response",
  ]);
  expect(frames.find((frame) => frame.type === "config_update")).toMatchObject({ model: { provider: "offline", id: "echo" } });
  expect(outputs(await daemon.prompt("/model nothing/such"))[0]).toMatch(/^No model matches "nothing\/such"/);
});

test("every built-in slash command answers without arguments, prints, and starts no run", async () => {
  const daemon = await start();
  for (const command of [
    "help",
    "model",
    "thinking",
    "rename",
    "tools",
    "context",
    "usage",
    "session",
    "todo",
    "settings",
    "skills",
    "queue",
    "extensions",
  ]) {
    const frames = await daemon.prompt(`/${command}`);
    expect([command, outputs(frames).length, frames.some((frame) => frame.type === "agent_start")]).toEqual([command, 1, false]);
    expect(frames.filter((frame) => frame.type === "extension_error")).toEqual([]);
  }
});

test("/todo keeps the plan in the todo extension's own state", async () => {
  const daemon = await start();
  expect(outputs(await daemon.prompt("/todo append write tests"))[0]).toContain("write tests");
  const { todoPhases } = await daemon.ask("get_state");
  expect(JSON.stringify(todoPhases)).toContain("write tests");
});

test("the system prompt holds context files, and SYSTEM.md replaces the instructions", async () => {
  const daemon = await start({
    files: { "AGENTS.md": "Speak plainly.", "cwd/CLAUDE.md": "Use tabs.", "SYSTEM.md": "Be a pirate." },
  });
  const { systemPrompt } = await daemon.ask("get_state");
  expect(systemPrompt).toEqual(["Be a pirate.", expect.stringMatching(/Speak plainly\.[\s\S]*Use tabs\./)]);
});

test("semantics 62: an extension that appears, an edited settings file and /reload are seen", async () => {
  const daemon = await start({ files: { "config.yml": "steeringMode: all\n" } });
  const after = daemon.frames.length;
  daemon.write(
    "extensions/hello.mjs",
    'import { defineSlashCommand } from "mortise/extension";\nexport default defineSlashCommand({ name: "hello", description: "Greets", run: (ctx) => ctx.output("hi") });\n',
  );
  const update = await daemon.next(
    (frame) => frame.type === "available_commands_update" && JSON.stringify(frame).includes('"hello"'),
    { after },
  );
  expect((update["commands"] as unknown[]).at(-1)).toEqual({
    name: "hello",
    description: "Greets",
    input: { hint: "arguments" },
    source: "extension",
  });
  expect(outputs(await daemon.prompt("/hello"))).toEqual(["hi"]);
  expect(outputs(await daemon.prompt("/reload hello"))[0]).toMatch(/^hello(?:\.mjs)?: /);
  expect(outputs(await daemon.prompt("/extensions"))[0]).toContain("slash command:hello");
  expect(outputs(await daemon.prompt("/settings steeringMode"))[0]).toContain('steeringMode = "all" (user: ');
  rmSync(join(daemon.home, "extensions/hello.mjs"));
  await daemon.next((frame) => frame.type === "available_commands_update" && !JSON.stringify(frame).includes('"hello"'), {
    after: daemon.frames.length,
  });
});

test("semantics 9: setters of the wire hold for the process and leave the file as it is", async () => {
  const text = "# mine\nsteeringMode: all # keep\n";
  const daemon = await start({ files: { "config.yml": text } });
  expect(await daemon.ask("get_state")).toMatchObject({ steeringMode: "all" });
  await daemon.ask("set_steering_mode", { mode: "one-at-a-time" });
  await daemon.ask("set_follow_up_mode", { mode: "all" });
  await daemon.ask("set_interrupt_mode", { mode: "wait" });
  await daemon.ask("set_auto_retry", { enabled: false });
  await daemon.ask("set_auto_compaction", { enabled: false });
  expect(await daemon.ask("get_state")).toMatchObject({
    steeringMode: "one-at-a-time",
    followUpMode: "all",
    interruptMode: "wait",
  });
  expect(readFileSync(join(daemon.home, "config.yml"), "utf8")).toBe(text);
});

test("a broken --config ends the start with one readable line", async () => {
  const options = { config: ["/nowhere/over.yml"] };
  await expect(startDaemon({ options })).rejects.toThrow('Cannot use settings file "/nowhere/over.yml": it does not exist');
});

test("case 27: no value of a settings file reaches a frame, whatever is wrong with it", async () => {
  const daemon = await start({
    files: {
      "config.yml": "providers: {acme: {apiKey: sk-CANARY2}}\nagent: {maxConcurrency: sk-CANARY1}\n",
      "cwd/.mortise/config.yml": "a: [sk-CANARY3\n",
    },
  });
  for (const text of ["/settings", "/settings agent.maxConcurrency", "/settings providers"]) await daemon.prompt(text);
  await daemon.next((frame) => frame.type === "notice" && String(frame["message"]).includes("maxConcurrency"), { after: 0 });
  expect(JSON.stringify(daemon.frames)).not.toContain("CANARY");
});
