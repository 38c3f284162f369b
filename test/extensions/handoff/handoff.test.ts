// The handoff command (protocol-facts §1.9; agent-semantics §2.11, §12 items 16 and 65).
import { readFileSync, statSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import {
  beforeAgentStart,
  defineHook,
  type ProviderRequest,
  sessionBeforeSwitch,
  sessionSwitched,
} from "../../../core/extension.ts";
import { startDaemon, type TestDaemon } from "../../../core/testing.ts";
import {
  done,
  fail,
  Gate,
  type Reply,
  type ScriptedProvider,
  says,
  scriptedModel,
  scriptedProvider,
} from "../../support/scripted-provider.ts";

let d: TestDaemon;
afterEach(() => d.stop());

const textOf = (message: unknown): string => {
  const { content } = message as { content: string | { text?: string }[] };
  return typeof content === "string" ? content : content.map((block) => block.text ?? "").join("");
};
const asksForDocument = (request: ProviderRequest) => textOf(request.messages.at(-1)).startsWith("Stop working on the task now.");

async function start(
  document: (request: ProviderRequest) => Reply = () => says("The goal is tea."),
  more: readonly unknown[] = [],
): Promise<ScriptedProvider> {
  const provider = scriptedProvider((request, turn) => (asksForDocument(request) ? document(request) : says(`answer ${turn}`)));
  d = await startDaemon({ watch: false, env: {}, extensions: { scripted: [[provider.definition, ...more]] } });
  d.daemon.conversations.attached.select({ model: scriptedModel });
  return provider;
}
const attached = () => d.daemon.conversations.attached;

describe("handoff", () => {
  it("goes on in a new session that begins with the document and names the old one", async () => {
    const provider = await start();
    await d.prompt("Make tea");
    const old = attached();
    const before = readFileSync(old.log.file ?? "", "utf8");
    const response = await d.request("handoff", { customInstructions: "mind the milk" });
    expect(response).toMatchObject({ success: true, data: {} });
    expect(attached()).not.toBe(old);
    expect(attached().log.parentSession).toBe(old.log.file);
    expect(readFileSync(old.log.file ?? "", "utf8")).toBe(before);
    const { messages } = (await d.ask("get_messages")) as { messages: unknown[] };
    expect(messages).toMatchObject([{ role: "custom", customType: "handoff", display: true }]);
    expect(textOf(messages[0])).toContain("<handoff-context>\nThe goal is tea.\n</handoff-context>");
    expect(readFileSync(attached().log.file ?? "", "utf8")).toContain('"customType":"handoff"');
    const request = provider.requests[1];
    expect(request).toMatchObject({ toolChoice: "none", systemPrompt: provider.requests[0]?.systemPrompt });
    expect(request?.tools).toEqual(provider.requests[0]?.tools);
    expect(textOf(request?.messages.at(-1))).toContain("mind the milk");
    await d.prompt("Go on");
    expect(textOf(provider.requests[2]?.messages[0])).toContain("The goal is tea.");
    expect(provider.refused).toEqual([]);
    expect(d.daemon.conversations.list()).toHaveLength(1);
    expect(await d.ask("get_state")).toMatchObject({ model: { id: "scripted" }, isCompacting: false });
  });

  it("keeps the account beside the old session when it is to be saved", async () => {
    const provider = scriptedProvider((request, turn) =>
      asksForDocument(request) ? says("The goal is tea.") : says(`answer ${turn}`),
    );
    d = await startDaemon({
      watch: false,
      env: {},
      extensions: { scripted: [[provider.definition]] },
      files: { "config.yml": "compaction:\n  handoffSaveToDisk: true\n" },
    });
    attached().select({ model: scriptedModel });
    await d.prompt("Make tea");
    const beside = (attached().log.file ?? "").replace(/\.jsonl$/, "");
    const { savedPath } = (await d.ask("handoff")) as { savedPath: string };
    expect(savedPath).toMatch(/\/handoff-[0-9TZ-]+\.md$/);
    expect(savedPath.startsWith(`${beside}/`)).toBe(true);
    expect(readFileSync(savedPath, "utf8")).toBe("The goal is tea.\n");
    expect(statSync(savedPath).mode & 0o777).toBe(0o600);
  });

  it("refuses with the texts that hosts know", async () => {
    await start();
    expect(await d.request("handoff")).toMatchObject({ success: false, error: "Nothing to hand off (no messages yet)" });
    await d.prompt("one");
    Object.assign(attached().selection, { model: undefined });
    expect(await d.request("handoff")).toMatchObject({ success: false, error: "No model selected for handoff" });
    Object.assign(attached().selection, { model: { ...scriptedModel, provider: "anthropic", api: "anthropic-messages" } });
    expect(await d.request("handoff")).toMatchObject({ success: false, error: "No API key for anthropic" });
    expect(await d.ask("get_state")).toMatchObject({ isCompacting: false });
  });

  it("refuses while a response is in progress and leaves the turn intact (item 16)", async () => {
    const gate = new Gate();
    const provider = scriptedProvider([{ type: "start" }, gate, ...says("whole answer").slice(1)]);
    d = await startDaemon({ watch: false, env: {}, extensions: { scripted: [[provider.definition]] } });
    attached().select({ model: scriptedModel });
    d.send({ id: "p", type: "prompt", message: "one" });
    await d.next("message_start");
    expect(await d.request("handoff")).toMatchObject({
      success: false,
      error: "Cannot hand off while a response is in progress",
      code: "busy",
    });
    gate.open();
    await d.next("agent_end");
    expect(await d.ask("get_last_assistant_text")).toEqual({ text: "whole answer" });
  });

  it("answers null when an extension keeps the session, and asks no model", async () => {
    const provider = await start(undefined, [
      defineHook(sessionBeforeSwitch, ({ reason }) => (reason === "handoff" ? { cancel: true as const } : undefined)),
    ]);
    await d.prompt("one");
    const old = attached();
    expect(await d.request("handoff")).toMatchObject({ success: true, data: null });
    expect(attached()).toBe(old);
    expect(provider.requests).toHaveLength(1);
  });

  it("passes a failure of the model through and stays", async () => {
    await start(() => [fail("Your credit is used up", "quota")]);
    await d.prompt("one");
    const old = attached();
    expect(await d.request("handoff")).toMatchObject({ success: false, error: "Your credit is used up" });
    expect(attached()).toBe(old);
    expect(d.daemon.conversations.list()).toHaveLength(1);
  });

  it("says what to do when the conversation is too long, and takes a summary for many messages", async () => {
    const replies: Reply[] = [[fail("prompt is too long", "overflow")], says("The goal is tea.")];
    await start(() => replies.shift() ?? says("unexpected"));
    await d.prompt("one");
    const { log } = attached();
    expect(await d.request("handoff")).toMatchObject({
      success: false,
      error: "The conversation is too long for an account of it; compact it first (prompt is too long)",
    });
    const firstKeptEntryId = log.append({ type: "custom", customType: "nothing-kept" }).id;
    log.append({ type: "compaction", summary: "## Goal\nTea", firstKeptEntryId, tokensBefore: 1 });
    expect(attached().messages).toHaveLength(1);
    expect(await d.request("handoff")).toMatchObject({ success: true, data: {} });
    expect(attached().log).not.toBe(log);
  });

  it("tells the next agent that the account was cut off at the output limit", async () => {
    await start(() => [...says("The goal is").slice(0, -1), done("length")]);
    await d.prompt("one");
    await d.ask("handoff");
    expect(textOf(attached().messages[0])).toContain("The goal is\n[This account was cut off at the output limit.]\n</handoff");
  });

  it("asks again without the tool choice when the service does not know it", async () => {
    const provider = await start((request) =>
      request.toolChoice === "none" ? [fail("400 tool_choice is not supported", "fatal")] : says("Document"),
    );
    await d.prompt("one");
    expect(await d.request("handoff")).toMatchObject({ success: true, data: {} });
    expect(provider.requests.map((request) => request.toolChoice)).toEqual([undefined, "none", "auto"]);
  });

  it("is cancelled by abort while an extension that listens to nothing is asked", async () => {
    const asked = new Gate();
    const hook = defineHook(sessionBeforeSwitch, () => {
      asked.open();
      return new Promise<never>(() => {});
    });
    const provider = await start(undefined, [hook]);
    await d.prompt("one");
    const old = attached();
    const handing = d.request("handoff");
    await asked.passed;
    await d.ask("abort");
    expect(await handing).toMatchObject({ success: false, error: "Handoff cancelled" });
    expect(attached()).toBe(old);
    await d.prompt("two");
    expect(provider.requests).toHaveLength(2);
  });

  it("is cancelled by abort", async () => {
    const asked = new Gate();
    const provider = await start(() => [() => asked.open(), new Gate(), ...says("never")]);
    await d.prompt("one");
    const old = attached();
    d.send({ id: "h", type: "handoff" });
    await asked.passed;
    expect(await d.ask("get_state")).toMatchObject({ isCompacting: true });
    expect(await d.request("compact")).toMatchObject({ success: false, code: "busy" });
    await d.ask("abort");
    expect(d.frames.find((frame) => frame["id"] === "h")).toMatchObject({
      success: false,
      error: "Handoff cancelled",
      code: "cancelled",
    });
    expect(provider.aborted).toBe(1);
    expect(attached()).toBe(old);
    expect(await d.ask("get_state")).toMatchObject({ isCompacting: false });
  });

  it("carries what is queued meanwhile over to the new session, once and in order", async () => {
    const asked = new Gate();
    const gate = new Gate();
    const switched: string[] = [];
    const provider = await start(
      () => [() => asked.open(), gate, ...says("Document")],
      [defineHook(sessionSwitched, ({ reason }) => void switched.push(reason))],
    );
    await d.prompt("one");
    const old = attached();
    d.send({ id: "h", type: "handoff" });
    await asked.passed;
    const after = d.frames.length;
    for (const [type, message] of [
      ["steer", "steered"],
      ["follow_up", "followed"],
      ["prompt", "prompted"],
      ["prompt", "again"],
    ] as const)
      expect(await d.request(type, { message })).toMatchObject({ success: true });
    gate.open();
    await d.next("agent_end", { after });
    await attached().whenIdle();
    expect(attached()).not.toBe(old);
    const users = attached().messages.flatMap((message) => (message.role === "user" ? [textOf(message)] : []));
    expect([...users].sort()).toEqual(["again", "followed", "prompted", "steered"]);
    expect(users.indexOf("prompted")).toBeLessThan(users.indexOf("again"));
    expect(old.messages).toHaveLength(2);
    expect(switched).toEqual(["startup", "handoff"]);
    expect(provider.refused).toEqual([]);
    expect(await d.ask("get_state")).toMatchObject({ queuedMessageCount: 0, isStreaming: false });
  });

  it("delivers steering that was queued, without a prompt", async () => {
    const asked = new Gate();
    const gate = new Gate();
    await start(() => [() => asked.open(), gate, ...says("Document")]);
    await d.prompt("one");
    d.send({ id: "h", type: "handoff" });
    await asked.passed;
    const after = d.frames.length;
    await d.request("steer", { message: "steered" });
    gate.open();
    await d.next("agent_end", { after });
    expect(attached().messages.map((message) => message.role)).toEqual(["custom", "user", "assistant"]);
  });

  it("does not use a system prompt that an extension set for one run (item 65)", async () => {
    const provider = await start(undefined, [
      defineHook(beforeAgentStart, (plan) => ({ ...plan, systemPrompt: ["Only for this run"] })),
    ]);
    await d.prompt("one");
    await d.ask("handoff");
    expect(provider.requests[0]?.systemPrompt).toEqual(["Only for this run"]);
    expect(provider.requests[1]?.systemPrompt).not.toContain("Only for this run");
  });

  it("is there as /handoff", async () => {
    await start();
    await d.prompt("one");
    const old = attached();
    const after = d.frames.length;
    d.send({ id: "s", type: "prompt", message: "/handoff" });
    expect((await d.next("command_output", { after }))["text"]).toContain("new session");
    expect(attached()).not.toBe(old);
  });
});
