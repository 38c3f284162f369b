// Every example, loaded from a user's folder and used through frames.
import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { TestDaemon } from "mortise/testing";
import { afterEach, expect, it } from "vitest";
import { parse } from "yaml";
import { answerOf, startWith, uiFrames } from "./_start.ts";

let daemon: TestDaemon | undefined;
async function start(...args: Parameters<typeof startWith>): Promise<TestDaemon> {
  daemon = await startWith(...args);
  expect(daemon.frames.filter((frame) => frame.type === "extension_error")).toEqual([]);
  return daemon;
}
afterEach(async () => {
  await daemon?.stop();
  daemon = undefined;
});

it("hello: a tool for the model", async () => {
  const d = await start(["hello.ts"]);
  expect((await d.callTool("hello", { name: "Ada" })).text).toBe("Hello, Ada!");
  const wrong = await d.callTool("hello", { nam: "Ada" });
  expect(wrong).toMatchObject({ isError: true, text: expect.stringContaining("name") });
});

it("permission-gate: asks about dangerous commands, and no answer means no", async () => {
  let answer: Record<string, unknown> = { confirmed: false };
  const d = await start(["permission-gate.ts"], { answers: { confirm: () => answer } });
  expect(await d.callTool("bash", { command: "sudo true" })).toMatchObject({
    isError: true,
    text: "The person did not allow this command",
  });
  answer = { confirmed: true };
  expect((await d.callTool("bash", { command: "echo rm -r nothing" })).text).toContain("rm -r nothing");
  expect(uiFrames(d, "confirm")).toHaveLength(2);
  expect((await d.callTool("bash", { command: "echo fine" })).text).toContain("fine");
  expect(uiFrames(d, "confirm")).toHaveLength(2);
  await d.stop();

  const silent = await start(["permission-gate.ts"], { options: { noUi: true } });
  expect((await silent.callTool("bash", { command: "sudo true" })).isError).toBe(true);
});

it("protected-paths: blocks at the seal, by a setting", async () => {
  const d = await start(["protected-paths.ts"], { files: { "config.yml": "protectedPaths: [secrets]\n" } });
  const blocked = await d.callTool("write", { path: "./x/../secrets/a.txt", content: "x" });
  expect(blocked).toMatchObject({ isError: true, text: expect.stringContaining('"secrets" is protected') });
  expect((await d.callTool("write", { path: "secrets.txt", content: "x" })).isError).toBe(false);
});

it("count-lines: reports progress, keeps details, fails in words", async () => {
  const d = await start(["count-lines.ts"]);
  d.write("cwd/a.txt", "1\n2\n3\n");
  d.write("cwd/b.txt", "1\n");
  const counted = await d.callTool("count_lines", { paths: ["a.txt", "b.txt"] });
  expect(counted).toMatchObject({ text: "3 a.txt\n1 b.txt", details: { counts: { "a.txt": 3, "b.txt": 1 } } });
  expect(counted.updates[0]).toBe("Counting a.txt (1 of 2)");
  const failed = await d.callTool("count_lines", { paths: ["none"] });
  expect(failed).toMatchObject({ isError: true, text: expect.stringMatching(/^Cannot read .*none/) });
});

it("parrot-provider: its model is listed, chosen and answers", async () => {
  const d = await start(["parrot-provider.ts"]);
  const { models } = await d.ask("get_available_models");
  expect(models).toContainEqual(expect.objectContaining({ provider: "parrot", id: "parrot-1" }));
  await d.ask("set_model", { provider: "parrot", modelId: "parrot-1" });
  expect(answerOf(await d.prompt("polly wants a cracker"))).toBe("POLLY WANTS A CRACKER");
  const { model } = await d.ask("get_state");
  expect(model).toMatchObject({ id: "parrot-1" });
});

it("notes-scheme: read and write of note://, kept in the session", async () => {
  const d = await start(["notes-scheme.ts"]);
  const missing = await d.callTool("read", { path: "note://plan" });
  expect(missing).toMatchObject({ isError: true, text: expect.stringContaining('no note "plan"') });
  expect((await d.callTool("write", { path: "note://plan", content: "first this" })).isError).toBe(false);
  expect((await d.callTool("read", { path: "note://plan" })).text).toContain("first this");
  expect((await d.callTool("read", { path: "note://a/b" })).isError).toBe(true);
  const { sessionFile } = await d.ask("get_state");
  await d.ask("new_session");
  expect((await d.callTool("read", { path: "note://plan" })).isError).toBe(true);
  await d.ask("switch_session", { sessionPath: sessionFile });
  expect((await d.callTool("read", { path: "note://plan" })).text).toContain("first this");
});

it("setup-wizard: several dialogs, and a cancelled one ends it", async () => {
  const answers: Record<string, Record<string, unknown>> = {
    select: { value: "class" },
    input: { value: "Button" },
    editor: { value: "export class Button {}\n" },
    confirm: { confirmed: true },
  };
  const scripted = Object.fromEntries(Object.keys(answers).map((method) => [method, () => answers[method]]));
  const d = await start(["setup-wizard.ts"], { answers: scripted });
  await d.slash("/new-component");
  expect(readFileSync(join(d.cwd, "components/Button.ts"), "utf8")).toBe("export class Button {}\n");
  expect(uiFrames(d, "editor")[0]).toMatchObject({ prefill: "export class Button {}\n" });
  expect(uiFrames(d, "notify")).toMatchObject([{ message: "Created Button" }]);
  expect(uiFrames(d, "setStatus")).toMatchObject([{ statusText: "Last: Button" }]);
  answers["input"] = { cancelled: true };
  expect(await d.slash("/new-component")).toContain("Nothing was created");
});

it("bookmarks: subcommands, completion data, and text that goes on to the model", async () => {
  const d = await start(["bookmarks.ts"]);
  expect(await d.slash("/bookmark")).toBe("Nothing was kept yet");
  expect(await d.slash("/bm add let x = 1")).toBe("Kept as 1");
  expect(await d.slash("/bookmark list")).toBe("1. let x = 1");
  expect(await d.slash("/bookmark go 7")).toContain("Usage");
  expect(answerOf(await d.prompt("/bookmark go 1"))).toContain("Explain this line: let x = 1");
  const { commands } = await d.ask("get_available_commands");
  const listed = (commands as { name: string; subcommands?: { name: string }[] }[]).find(({ name }) => name === "bookmark");
  expect(listed?.subcommands?.map(({ name }) => name)).toEqual(["add", "list", "go"]);
});

it("rpc-commands: a new wire command, and one that changes a built-in", async () => {
  const d = await start(["rpc-commands"]);
  expect(await d.ask("get_uptime", { unit: "minutes" })).toMatchObject({ unit: "minutes", value: expect.any(Number) });
  expect(await d.request("get_uptime", { unit: "days" })).toMatchObject({ success: false, error: "Unknown unit: days" });
  expect(await d.request("get_uptime", { unit: 3 })).toMatchObject({ success: false, command: "get_uptime" });
  await d.ask("set_session_name", { name: `  ${"a long name ".repeat(9)}` });
  const { sessionName } = await d.ask("get_state");
  expect(sessionName).toBe("a long name a long name a long name a lo");
  // What the built-in refuses is still refused.
  expect(await d.request("set_session_name", { name: " " })).toMatchObject({ success: false, command: "set_session_name" });
});

it("read-guard: takes the place of a built-in tool and passes through", async () => {
  const d = await start(["read-guard.ts"]);
  d.write("cwd/a.txt", "one\ntwo\nthree\n");
  d.write("cwd/id.pem", "secret");
  expect((await d.callTool("read", { path: "a.txt", offset: 2, limit: 1 })).text).toContain("two");
  const refused = await d.callTool("read", { path: "id.pem" });
  expect(refused.isError).toBe(true);
  expect(refused.text).not.toContain("secret");
});

it("compaction-notes: the extension's own summary, without a model", async () => {
  const d = await start(["compaction-notes.ts"], { files: { "config.yml": "compaction:\n  keepRecentTokens: 1\n" } });
  for (const which of ["first", "second", "third"]) await d.prompt(`${which} question ${"with many words ".repeat(20)}`);
  const compacted = await d.ask("compact", { customInstructions: "notes" });
  expect(compacted["summary"]).toMatch(/^The person asked for:\n- first question/);
  await d.next((frame) => frame["method"] === "notify");
  expect(uiFrames(d, "notify")).toMatchObject([{ message: expect.stringContaining("Compacted by an extension") }]);
});

it("counter: state goes from version to version, also from an older shape", async () => {
  const d = await start(["counter.ts"]);
  await d.callTool("count", { name: "Ada" });
  await d.reload("counter");
  expect((await d.callTool("count", { name: "Bo" })).text).toBe("2 counted, the last ones: Ada, Bo");
  await d.stop();

  const old = `import { defineExtension } from "mortise/extension";
    export const hot = { version: 1 };
    export default defineExtension({ name: "counter", setup(scope) { scope.hot.data = { count: 41 }; } });`;
  const source = readFileSync(fileURLToPath(new URL("counter.ts", import.meta.url)), "utf8");
  const e = await start([], { files: { "extensions/counter.ts": old } });
  e.write("extensions/counter.ts", source);
  await e.reload("counter");
  expect((await e.callTool("count", { name: "Cy" })).text).toBe("42 counted, the last ones: Cy");
});

it("words: a service, and a dependant that is activated again when the service changes", async () => {
  const words = (name: string) => readFileSync(fileURLToPath(new URL(`words/${name}`, import.meta.url)), "utf8");
  const names = ["_words.ts", "word-list.ts", "word-index.ts"];
  const e = await start([], { files: Object.fromEntries(names.map((name) => [`extensions/${name}`, words(name)])) });
  expect((await e.callTool("word_for", { letter: "m" })).text).toBe("mortise");
  expect((await e.callTool("word_for", { letter: "z" })).text).toBe("No word starts with z");
  e.write("extensions/word-list.ts", words("word-list.ts").replace('"tenon"', '"tenon", "zip"'));
  await e.reload("word-list");
  await e.daemon.loader.settled();
  expect((await e.callTool("word_for", { letter: "z" })).text).toBe("zip");
});

it("reply-language: a section of the system prompt, by a setting", async () => {
  const d = await start(["reply-language.ts"], { files: { "config.yml": "reply:\n  language: French\n" } });
  const { systemPrompt } = await d.ask("get_state");
  expect(JSON.stringify(systemPrompt)).toContain("Answer in French");
});

it("shorthand: input is changed, or dealt with so that no model is asked", async () => {
  const d = await start(["shorthand.ts"]);
  expect(answerOf(await d.prompt("LGTM"))).toBe("This looks good to me. Commit it.");
  const frames = await d.prompt("ping");
  expect(frames.some((frame) => frame.type === "agent_start")).toBe(false);
  expect(uiFrames(d, "notify")).toMatchObject([{ message: "pong" }]);
});

it("mask-tokens: the result of a tool is changed before the model sees it", async () => {
  const d = await start(["mask-tokens.ts"]);
  const { text } = await d.callTool("bash", { command: "echo key ghp_0123456789abcdefABCD end" });
  expect(text).toContain("key [secret] end");
});

it("heartbeat: a timer, a frame and a state field that end with their version", async () => {
  const d = await start(["heartbeat.ts"]);
  await d.next((frame) => frame.type === "heartbeat" && frame["beats"] === 1);
  expect(await d.ask("get_state")).toMatchObject({ heartbeats: 1 });
  await d.reload("heartbeat");
  const after = d.frames.length;
  await d.next("heartbeat", { after });
  expect(d.frames.slice(after).filter((frame) => frame.type === "heartbeat")).toMatchObject([{ beats: 1 }]);
});

it("packaged: a folder whose package.json names its entry; its helper reloads it", async () => {
  const d = await start(["packaged"]);
  expect(await d.slash("/words one two  three")).toBe("3 words");
  d.write("extensions/packaged/src/count-words.ts", "export const countWords = () => 0;");
  await d.reload("packaged");
  expect(await d.slash("/words one")).toBe("0 words");
  // Its manifest promises slash commands only.
  d.write("extensions/packaged/src/index.ts", readFileSync(fileURLToPath(new URL("hello.ts", import.meta.url)), "utf8"));
  await expect(d.reload("packaged")).rejects.toThrow(/tool/);
  expect(await d.slash("/words one")).toBe("0 words");
});

it("config: settings that decide who answers a name, and where extensions lie", async () => {
  const yaml = (name: string) => readFileSync(fileURLToPath(new URL(`config/${name}`, import.meta.url)), "utf8");
  const second = `import { defineTool, z } from "mortise/extension";
    export default defineTool({ name: "read", description: "", params: z.object({ path: z.string() }), run: () => "the second" });`;
  const files = { "extensions/a-reader.ts": second, "config.yml": yaml("conflicts.yml") };
  const d = await start(["read-guard.ts", "heartbeat.ts", "bookmarks.ts"], { files });
  d.write("cwd/a.txt", "hello");
  // By their paths a-reader.ts would answer.
  expect((await d.callTool("read", { path: "id.key" })).text).toContain("Private keys are not for reading");
  expect((await d.callTool("other_read", { path: "a.txt" })).text).toBe("the second");
  expect(await d.ask("get_state")).not.toHaveProperty("heartbeats");
  const { commands } = await d.ask("get_available_commands");
  expect((commands as { name: string }[]).map(({ name }) => name)).not.toContain("bookmark");
  await d.stop();

  expect(parse(yaml("isolation.yml"))).toEqual({ isolate: ["hello", "acme-*"], isolation: { memoryMb: 256, stallMs: 5000 } });

  const source = readFileSync(fileURLToPath(new URL("hello.ts", import.meta.url)), "utf8");
  const away = { "code/my-extension/index.ts": source, "config.yml": yaml("extensions.yml") };
  const home = realpathSync(mkdtempSync(join(tmpdir(), "mortise-examples-")));
  try {
    const e = await start([], { home, files: away, env: { ...process.env, HOME: home } });
    expect((await e.callTool("hello", { name: "Ada" })).text).toBe("Hello, Ada!");
  } finally {
    await daemon?.stop();
    daemon = undefined;
    rmSync(home, { recursive: true, force: true });
  }
});

it("has a test for every example", () => {
  const folder = fileURLToPath(new URL(".", import.meta.url));
  const own = readFileSync(join(folder, "examples.test.ts"), "utf8");
  const names = readdirSync(folder).filter((name) => !/^_|\.test\.ts$|^pi$/.test(name));
  expect(names.length).toBeGreaterThanOrEqual(14);
  for (const name of names) expect(own, name).toContain(`it("${name.replace(/\.\w+$/, "")}: `);
});
