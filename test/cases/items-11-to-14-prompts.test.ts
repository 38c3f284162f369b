// agent-semantics 12.11 to 12.14: when a prompt that is no plain text is answered, and what an extension's messages do to it.
import { rmSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { ask, ofId, request, textOf, useProcesses, wait } from "./_support.ts";

const { start, service } = useProcesses();
const skill = { "skills/pdf/SKILL.md": "---\nname: pdf\ndescription: Reads PDF files\n---\nUse pdftotext.\n" };

it("acknowledges /skill:x before a slow hook and a slow provider (item 11)", async () => {
  const fake = await service();
  let go: (value?: unknown) => void = () => {};
  fake.script({ text: "done", hold: new Promise((resolve) => (go = resolve)) });
  const slow = `
import { beforeAgentStart, defineHook } from "mortise/extension";
export default defineHook(beforeAgentStart, () => new Promise((resolve) => setTimeout(resolve, 700)));`;
  const daemon = start({ ...fake.daemon, files: { ...skill, "extensions/slow.ts": slow } });
  await ask(daemon, "get_state");
  const response = await request(daemon, "prompt", { message: "/skill:pdf the manual" });
  expect(response).toMatchObject({ success: true, data: { agentInvoked: true } });
  expect(fake.requests).toHaveLength(0);
  expect(await ask(daemon, "get_state")).toMatchObject({ isStreaming: true });
  const body = JSON.stringify((await fake.request(1)).body);
  expect(body).toContain("Use pdftotext.");
  expect(body).toContain("the manual");
  go();
  await wait(daemon, "agent_end");
});

it("fails /skill:x at once when its file cannot be read; no run starts (item 11)", async () => {
  const daemon = start({ files: skill });
  await ask(daemon, "get_state");
  rmSync(join(daemon.home, "skills/pdf/SKILL.md"));
  // Read at once, before the watcher has taken the command away.
  const response = await request(daemon, "prompt", { message: "/skill:pdf" });
  expect(response).toMatchObject({
    command: "prompt",
    success: false,
    error: expect.stringContaining('Cannot read skill "pdf"'),
  });
  expect(daemon.frames.filter((frame) => frame.type === "agent_start")).toEqual([]);
});

const commands = `
export default function (pi) {
  pi.registerCommand("later", { description: "Sends a user message", handler: async () => { pi.sendUserMessage("from the command"); } });
  pi.registerCommand("custom", { description: "Custom message with a turn", handler: async () => {
    pi.sendMessage({ customType: "x", content: "custom text", display: true }, { triggerTurn: true });
  } });
  pi.registerCommand("twice", { description: "Two messages, the second while the first runs", handler: async () => {
    pi.sendMessage({ customType: "x", content: "first", display: true }, { triggerTurn: true });
    pi.sendMessage({ customType: "x", content: "second", display: true }, { triggerTurn: true });
    pi.sendUserMessage("third");
  } });
  pi.registerCommand("quiet", { description: "A message that starts nothing", handler: async () => {
    pi.sendMessage({ customType: "x", content: "only kept", display: true });
  } });
  pi.on("tool_execution_start", () => { if (!globalThis.said) { globalThis.said = true; pi.sendUserMessage("by the way"); } });
}`;

it.each(["later", "custom"])("/%s starts a turn, so nothing says that no agent ran (item 12)", async (name) => {
  const daemon = start({ files: { "extensions/commands.ts": commands } });
  const response = await request(daemon, "prompt", { message: `/${name}` });
  await wait(daemon, "agent_end");
  expect(await daemon.end()).toBe(0);
  expect(response).toMatchObject({ success: true });
  expect(
    daemon.frames.filter((frame) => (frame["data"] as { agentInvoked?: boolean } | undefined)?.agentInvoked === false),
  ).toEqual([]);
  expect(daemon.frames.filter((frame) => frame.type === "prompt_result")).toEqual([]);
  expect(daemon.frames.filter((frame) => frame.type === "message_end").length).toBeGreaterThanOrEqual(2);
});

it("messages that start no turn of their own cause no error and no exit (item 13)", async () => {
  const daemon = start({ files: { "extensions/commands.ts": commands } });
  expect(await request(daemon, "prompt", { message: "/twice" })).toMatchObject({ success: true });
  await wait(daemon, "agent_end");
  daemon.send({ id: "q", type: "prompt", message: "/quiet" });
  await wait(daemon, (frame) => frame.type === "prompt_result" && frame["id"] === "q", 0);
  const { messages } = (await ask(daemon, "get_messages")) as { messages: { role: string }[] };
  const texts = messages.map(textOf);
  for (const text of ["first", "second", "third", "only kept"])
    expect(texts.filter((each) => each === text).length, text).toBeGreaterThan(0);
  expect(daemon.frames.filter((frame) => frame.type === "extension_error")).toEqual([]);
  expect(await daemon.end()).toBe(0);
  expect(daemon.stderr()).not.toMatch(/unhandled|rejection/i);
});

it("a user message of an extension during a run is queued as steering (item 14)", async () => {
  const daemon = start({ files: { "extensions/commands.ts": commands } });
  daemon.send({ id: "p", type: "prompt", message: 'call ls {"path":"."}' });
  await wait(daemon, "agent_end");
  expect(daemon.frames.filter((frame) => frame.type === "extension_error")).toEqual([]);
  expect(ofId(daemon, "p")).toHaveLength(1);
  const users = daemon.frames
    .filter((frame) => frame.type === "message_end" && (frame["message"] as { role: string }).role === "user")
    .map((frame) => textOf(frame["message"]));
  expect(users).toEqual(['call ls {"path":"."}', "by the way"]);
  expect(daemon.frames.filter((frame) => frame.type === "agent_start")).toHaveLength(1);
});
