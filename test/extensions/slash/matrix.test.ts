// The matrix of agent-semantics §4 over every slash command that is registered: one answer, agentInvoked and prompt_result as the
// seeds say, output before the answer, no run of a local command; idle and while a run is going.
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { type StartOptions, startDaemon, type TestDaemon } from "../../../core/testing.ts";
import type { Frame } from "../../../protocol/frame.ts";
import { Gate, type Script, says, scriptedModel, scriptedProvider } from "../../support/scripted-provider.ts";

const daemons: TestDaemon[] = [];
const gates: Gate[] = [];
afterEach(async () => {
  for (const gate of gates.splice(0)) gate.open();
  for (const daemon of daemons.splice(0)) await daemon.stop();
});

async function start(script: Script[], options: StartOptions = {}) {
  const provider = scriptedProvider(...script);
  const { extensions, ...rest } = options;
  const daemon = await startDaemon({
    extensions: { scripted: [[provider.definition]], ...extensions },
    answers: {
      select: { cancelled: true },
      confirm: { confirmed: false },
      input: { cancelled: true },
      editor: { cancelled: true },
    },
    ...rest,
  });
  daemons.push(daemon);
  daemon.daemon.conversations.attached.select({ model: scriptedModel });
  return { daemon, provider };
}

/** A run that stands still until the test is over. */
async function streaming(options: StartOptions = {}, then: Script[] = []) {
  const gate = new Gate();
  gates.push(gate);
  const held: Script = [{ type: "text_start", index: 0 }, { type: "text_delta", index: 0, delta: "Well" }, gate, ...says("")];
  const started = await start([held, ...then], options);
  started.daemon.send({ id: "held", type: "prompt", message: "Go" });
  await started.daemon.next("message_update");
  return { ...started, gate };
}

let serial = 0;
/** Sends a slash command and gives every frame up to its end. */
async function run(daemon: TestDaemon, message: string, isConcurrent: boolean, more: Record<string, unknown> = {}) {
  const id = `slash-${++serial}`;
  const after = daemon.frames.length;
  daemon.send({ id, type: "prompt", message, ...more });
  const response = await daemon.next((frame) => frame.type === "response" && frame["id"] === id, { after });
  if (isConcurrent) await daemon.next((frame) => frame.type === "prompt_result" && frame["id"] === id, { after });
  // One more round through the lane: whatever came too much would be here by then.
  await daemon.ask("get_state");
  const frames = daemon.frames.slice(after).filter((frame) => frame.type !== "response" || frame["id"] === id);
  return { id, response, frames };
}

const at = (frames: readonly Frame[], type: string) => frames.findIndex((frame) => frame.type === type);
const of = (frames: readonly Frame[], type: string) => frames.filter((frame) => frame.type === type);

function isLocal({ id, response, frames }: Awaited<ReturnType<typeof run>>, isConcurrent: boolean): void {
  expect(of(frames, "response")).toHaveLength(1);
  const results = of(frames, "prompt_result");
  if (isConcurrent) {
    expect(response).toEqual({ id, type: "response", command: "prompt", success: true });
    expect(results).toEqual([{ type: "prompt_result", id, agentInvoked: false }]);
  } else {
    expect(response).toMatchObject({ success: true, data: { agentInvoked: false } });
    expect(results).toEqual([]);
  }
  expect(of(frames, "command_output").length).toBeGreaterThan(0);
  expect(at(frames, "command_output")).toBeLessThan(at(frames, isConcurrent ? "prompt_result" : "response"));
  expect(of(frames, "extension_error")).toEqual([]);
}

/** They take the conversation, so a run that is going is interrupted. */
const TAKES: ReadonlySet<string> = new Set(["compact", "handoff"]);

describe("every built-in command", () => {
  it.each(["idle", "streaming"] as const)("answers once, with and without arguments: %s", { timeout: 60_000 }, async (state) => {
    const { daemon } = state === "idle" ? await start([]) : await streaming();
    const listing = (await daemon.ask("get_available_commands"))["commands"] as {
      name: string;
      source: string;
      aliases?: string[];
    }[];
    const names = listing.filter(({ source }) => source === "builtin").flatMap(({ name, aliases = [] }) => [name, ...aliases]);
    expect(names.length).toBeGreaterThan(20);
    for (const name of names) {
      const { kernel } = daemon.daemon;
      const canonical = listing.find((each) => each.name === name || each.aliases?.includes(name))?.name ?? name;
      const definition = kernel.registry.get("slash command", canonical)?.definition;
      const isConcurrent = definition?.concurrency === "concurrent";
      for (const message of [`/${name}`, `/${name} zzz-nothing`, `/${name}:zzz-nothing`]) {
        try {
          const fresh = state === "streaming" && TAKES.has(name) ? (await streaming()).daemon : daemon;
          const done = await run(fresh, message, isConcurrent);
          isLocal(done, isConcurrent);
          expect(of(done.frames, "agent_start")).toEqual([]);
          // What takes the conversation ends the run that was going; nothing else ends one.
          expect(of(done.frames, "agent_end")).toHaveLength(fresh === daemon ? 0 : of(fresh.frames, "agent_end").length);
          expect(of(fresh.frames, "agent_end").length).toBeLessThanOrEqual(fresh === daemon ? 0 : 1);
        } catch (error) {
          throw new Error(`${message}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
        }
      }
    }
    expect(of(daemon.frames, "agent_end")).toEqual([]);
  });

  it("is in /help, with its hint and a description, and /help explains each", async () => {
    const { daemon } = await start([]);
    const help = await daemon.slash("/help");
    const listing = (await daemon.ask("get_available_commands"))["commands"] as {
      name: string;
      description?: string;
      input?: { hint?: string };
      subcommands?: { name: string; usage?: string }[];
    }[];
    for (const { name, description, input, subcommands } of listing) {
      expect(description, name).toBeTruthy();
      expect(help).toContain(input?.hint === undefined ? `/${name}` : `/${name} ${input.hint}`);
      const explained = await daemon.slash(`/help ${name}`);
      for (const each of subcommands ?? []) expect(explained).toContain(`/${name} ${each.usage ?? each.name}`);
    }
  });
});

const echoed = (frames: readonly Frame[]) =>
  of(frames, "message_end").map((frame) => JSON.stringify((frame["message"] as { content: unknown }).content));

describe("text with a slash that is no command", () => {
  it.each(["/x", "/x y z", "/usr/bin/env node", "/", "/ x", "//help"])("%s goes to the model as it is", async (message) => {
    const { daemon, provider } = await start([says("Hm")]);
    const frames = await daemon.prompt(message);
    expect(of(frames, "response")).toMatchObject([{ success: true }]);
    expect(of(frames, "response")[0]).not.toHaveProperty("data");
    expect(of(frames, "prompt_result")).toEqual([]);
    expect(provider.requests[0]?.messages.at(-1)).toMatchObject({ role: "user" });
    expect(echoed(frames)[0]).toContain(JSON.stringify(message).slice(1, -1));
  });
});

const commands = `
import { defineSlashCommand } from "mortise/extension";
const later = () => new Promise((resolve) => setTimeout(resolve, 30));
export default [
  defineSlashCommand({ name: "sync", description: "Prints", run: (ctx) => ctx.output("sync done") }),
  defineSlashCommand({ name: "async", description: "Prints later", run: async (ctx) => { await later(); ctx.output("async done"); } }),
  defineSlashCommand({ name: "sends", description: "Sends a message", run: async (ctx) => { await later(); void ctx.conversation.submit("from the command", { delivery: "followUp", invocation: ctx.invocation }); } }),
  defineSlashCommand({ name: "throws", description: "Fails", run: async () => { await later(); throw new Error("No such thing"); } }),
  defineSlashCommand({ name: "residual", description: "Goes on", run: (ctx, args) => ({ prompt: "Please " + args }) }),
];
`;
const files = {
  "extensions/commands.ts": commands,
  "prompts/review.md": "Review $1",
  "skills/pdf/SKILL.md": "---\ndescription: PDF\n---\nUse pdftotext.",
};

describe("commands of extensions, skills and files", () => {
  it.each(["idle", "streaming"] as const)(
    "that stay local are acknowledged and end with prompt_result false: %s",
    async (state) => {
      const { daemon } = state === "idle" ? await start([], { files }) : await streaming({ files });
      for (const name of ["sync", "async"]) isLocal(await run(daemon, `/${name} x`, true), true);
      const failed = await run(daemon, "/throws", true);
      expect(failed.response).toMatchObject({ success: true });
      expect(of(failed.frames, "extension_error")).toMatchObject([{ event: "command:throws", error: "No such thing" }]);
      expect(of(failed.frames, "prompt_result")).toEqual([{ type: "prompt_result", id: failed.id, agentInvoked: false }]);
      expect(of(daemon.frames, "agent_end")).toEqual([]);
    },
  );

  it("that send a message wait for it and do not say that no agent ran", async () => {
    const { daemon } = await start([says("Answer")], { files });
    const frames = await daemon.prompt("/sends");
    expect(of(frames, "response")).toHaveLength(1);
    expect(of(frames, "agent_end")).toHaveLength(1);
    await daemon.ask("get_state");
    expect(of(daemon.frames, "prompt_result")).toEqual([]);
    expect(echoed(frames)[0]).toContain("from the command");
  });

  it.each([
    ["/residual do it", "Please do it", undefined],
    ["/review it", "Review it", undefined],
    ["/skill:pdf page", "Use pdftotext.", { agentInvoked: true }],
  ])("%s starts a run, answered once", async (message, text, data) => {
    const { daemon } = await start([says("Answer")], { files });
    const frames = await daemon.prompt(message);
    expect(of(frames, "response")).toHaveLength(1);
    expect(of(frames, "response")[0]?.["data"]).toEqual(data);
    expect(echoed(frames)[0]).toContain(text);
    await daemon.ask("get_state");
    expect(of(daemon.frames, "prompt_result")).toEqual([]);
    expect(of(daemon.frames, "agent_end")).toHaveLength(1);
  });

  it("a file's prompt is queued while a run is going, or refused with the same id without streamingBehavior", async () => {
    const { daemon, gate } = await streaming({ files }, [says("Second")]);
    const queued = await run(daemon, "/review it", false, { streamingBehavior: "followUp" });
    expect(queued.response).toMatchObject({ success: true });
    expect(await daemon.ask("get_state")).toMatchObject({ queuedMessageCount: 1 });
    const after = daemon.frames.length;
    daemon.send({ id: "busy", type: "prompt", message: "/review more" });
    const refusal = await daemon.next((frame) => frame["id"] === "busy" && frame["success"] === false, { after });
    expect(refusal["error"]).toContain("Agent is already processing");
    gate.open();
    await daemon.next("agent_end");
    expect(JSON.stringify(of(daemon.frames, "message_end"))).toContain("Review it");
  });
});

it("/branch lists the messages, newest first, and goes on before one of them", async () => {
  const { daemon } = await start([says("One"), says("Two")]);
  await daemon.prompt("First question");
  await daemon.prompt("Second question");
  const list = await daemon.slash("/branch-points");
  expect(list).toMatch(/^ {2}1\. [0-9a-f]{8} +Second question\n {2}2\. [0-9a-f]{8} +First question$/);
  const before = (await daemon.ask("get_state"))["sessionFile"];
  expect(await daemon.slash("/branch 1")).toContain("It ends before: Second question");
  expect((await daemon.ask("get_state"))["sessionFile"]).not.toBe(before);
  expect(JSON.stringify(await daemon.ask("get_messages"))).not.toContain("Second question");
  expect(await daemon.slash("/branch zzz")).toContain("Usage: /branch");
});

describe("/session delete", () => {
  it("removes the file and what belongs to it, and goes on in a new session", async () => {
    const { daemon } = await start([says("One")]);
    expect(await daemon.slash("/session delete")).toContain("There is nothing to delete");
    await daemon.prompt("First question");
    const { sessionFile, sessionId } = await daemon.ask("get_state");
    const file = String(sessionFile);
    const sidecar = file.replace(/\.jsonl$/, "");
    mkdirSync(sidecar);
    writeFileSync(join(sidecar, "1.bash.log"), "output");
    expect(await daemon.slash("/session delete")).toBe(`Deleted ${file}. This is a new session`);
    expect([file, `${file}.lock`, sidecar].filter((path) => existsSync(path))).toEqual([]);
    const state = await daemon.ask("get_state");
    expect(state["sessionId"]).not.toBe(sessionId);
    expect(state["messageCount"]).toBe(0);
    await daemon.prompt("Second question");
    expect(existsSync(file)).toBe(false);
  });

  it("is refused while a run is going", async () => {
    const { daemon } = await streaming();
    const { sessionFile } = await daemon.ask("get_state");
    expect(await daemon.slash("/session delete")).toContain("Cannot delete the session while a run is going: abort it first");
    expect(existsSync(String(sessionFile))).toBe(true);
  });

  it("leaves it where it is when an extension keeps the session", async () => {
    const keeper = `import { defineHook, sessionBeforeSwitch } from "mortise/extension";
export default defineHook(sessionBeforeSwitch, () => ({ cancel: true }));\n`;
    const { daemon } = await start([says("One")], { files: { "extensions/keeper.ts": keeper } });
    await daemon.prompt("First question");
    const { sessionFile } = await daemon.ask("get_state");
    expect(await daemon.slash("/session delete")).toContain("The session was not deleted: it was not left");
    expect(existsSync(String(sessionFile))).toBe(true);
  });
});

it("/context tells the parts", async () => {
  const { daemon } = await start([says("One")]);
  await daemon.prompt("x".repeat(4000));
  const text = await daemon.slash("/context");
  expect(text).toMatch(/^Model +scripted\/scripted$/m);
  expect(text).toMatch(/^System prompt +about [\d,]+ tokens, \d+ blocks$/m);
  expect(text).toMatch(/^Tools +about [\d,]+ tokens, \d+ tools$/m);
  expect(text).toMatch(/^Messages: user +about 1,000 tokens, 1 message$/m);
  expect(text).toMatch(/^Messages: assistant +about 1 tokens, 1 message$/m);
});

it("/agents lists the kinds of subagents and explains one; /rules says what each is for", async () => {
  const files = {
    "agents/form.md":
      "---\nname: form\ndescription: Fills a form\ntools: read\nmodel: scripted/scripted\noutput: {type: object}\nblocking: false\n---\nFill it",
    "rules/tabs.md": "---\nalwaysApply: true\n---\nUse tabs.",
    "rules/no-any.md": "---\ncondition: ': any'\n---\nNo any.",
    "rules/sql.md": "---\ndescription: Before SQL\n---\nNo joins.",
    "rules/plain.md": "Plain.",
    "config.yml": "ttsr: {disabledRules: [no-any]}\n",
  };
  const { daemon } = await start([], { files });
  const agents = await daemon.slash("/agents");
  expect(agents).toMatch(/^form +Fills a form \(user\)$/m);
  expect(agents).toMatch(/^explore +Finds out .* \(bundled\)$/m);
  const form = await daemon.slash("/agents form");
  expect(form).toMatch(/^From +user: .*agents\/form\.md$/m);
  expect(form).toMatch(/^Tools +read$/m);
  expect(form).toMatch(/^Answers +as data/m);
  expect(form).toMatch(/^Waited for +no/m);
  expect(await daemon.slash("/agents zzz")).toBe('No agent is called "zzz". There are: form, task, explore, review');
  expect((await daemon.slash("/rules")).split("\n")).toEqual([
    "elided-code  watches the answers (builtin)",
    "no-any       off by ttsr.disabledRules (user)",
    "plain        unused: its head says no use (user)",
    "sql          read when it is needed (user)",
    "tabs         always in the system prompt (user)",
  ]);
  expect(await daemon.slash("/rules sql")).toMatch(/rules\/sql\.md\nNo joins\.$/);
  expect(await daemon.slash("/rules zzz")).toContain('No rule is called "zzz"');
});
