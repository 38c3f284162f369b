// Issue 3, first "Done when", on the built daemon: what a service that refuses unpaired calls, empty content, bad images and lone
// surrogates is sent over a long conversation with everything that can go wrong in it.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { ask, eventually, prompt, request, useProcesses, wait } from "../cases/_support.ts";
import type { FakeReply, FakeServer } from "../support/fake-provider.ts";
import type { DaemonProcess } from "../support/process.ts";
import { bodyOf, PIXEL, refusals, SERVICES, type Under } from "./_services.ts";

const use = useProcesses();
const open: FakeServer[] = [];
afterEach(async () => {
  for (const fake of open.splice(0)) await fake.close();
});

async function start(under: Under, config = "retry:\n  baseDelayMs: 1\n"): Promise<{ fake: FakeServer; daemon: DaemonProcess }> {
  const fake = await under.open();
  open.push(fake);
  const daemon = use.start({ ...under.options(fake), files: { "config.yml": config, "cwd/a.txt": "alpha\n" } });
  await wait(daemon, "ready");
  return { fake, daemon };
}

const forever = () => new Promise<never>(() => {});
const lastText = async (daemon: DaemonProcess) => (await ask(daemon, "get_last_assistant_text"))["text"];
const stopReason = (frames: { type: string; [key: string]: unknown }[]) => {
  const messages = frames
    .filter((frame) => frame.type === "message_end")
    .map((frame) => frame["message"] as Record<string, unknown>);
  return messages.filter((message) => message["role"] === "assistant").at(-1);
};

describe.each(SERVICES)("$name", (under) => {
  it("takes every request of 50 tool turns with thinking, images and failures of tools", { timeout: 120_000 }, async () => {
    const { fake, daemon } = await start(under);
    writeFileSync(join(daemon.cwd, "pixel.png"), Buffer.from(PIXEL, "base64"));
    for (let turn = 0; turn < 50; turn++) {
      const calls = [
        { name: "read", arguments: { path: turn % 5 === 0 ? "pixel.png" : "a.txt" } },
        { name: "read", arguments: { path: `missing-${turn}` } },
        { name: turn % 7 === 0 ? "no_such_tool" : "ls", arguments: {} },
      ].slice(0, 1 + (turn % 3));
      fake.script({
        thinking: `thought ${turn}`,
        signature: `c2ln${turn}AAA`.slice(0, 8),
        ...(turn % 2 === 0 && { text: `Step ${turn}` }),
        toolCalls: calls,
      });
    }
    fake.script({ thinking: "last thought", text: "All done" });
    const frames = await prompt(daemon, "Go through it \ud83d\ude00");
    expect(refusals(fake)).toEqual([]);
    expect(fake.requests).toHaveLength(51);
    expect(await lastText(daemon)).toBe("All done");
    expect(frames.filter((frame) => frame.type === "turn_end")).toHaveLength(51);
    expect(frames.filter((frame) => frame.type === "tool_execution_end")).toHaveLength(
      frames.filter((frame) => frame.type === "tool_execution_start").length,
    );
    const last = bodyOf(fake, -1);
    // The picture that a tool gave, and the thinking of turns before with its signature.
    expect(last).toContain(PIXEL.slice(0, 40));
    if (under.name === "anthropic") {
      expect(last).toContain("thought 0");
      expect(last).toContain('"signature"');
    }
    fake.script({ text: "Bye" });
    await prompt(daemon, "Thanks");
    expect(refusals(fake)).toEqual([]);
  });

  it("takes images of a prompt, of steering and of follow-ups (item 15)", async () => {
    const { fake, daemon } = await start(under);
    const images = [{ type: "image", data: PIXEL, mimeType: "image/png" }];
    const shown = (index: number) => bodyOf(fake, index).split(PIXEL).length - 1;
    let release = () => {};
    const held = () => new Promise<void>((resolve) => (release = resolve));
    fake.script({ text: "first", hold: held() }, { text: "second" }, { text: "third" }, { text: "fourth" });
    await ask(daemon, "prompt", { message: "look", images });
    await fake.request(1);
    expect(shown(0)).toBe(1);
    await ask(daemon, "steer", { message: "and this", images });
    await ask(daemon, "follow_up", { message: "and later this", images });
    await ask(daemon, "prompt", { message: "and at last", images, streamingBehavior: "followUp" });
    release();
    await wait(daemon, "agent_end");
    expect(shown(1)).toBe(2);
    expect(shown(-1)).toBe(4);
    expect(refusals(fake)).toEqual([]);
  });

  const points: readonly [string, FakeReply, string][] = [
    ["before the first byte", { text: "never", hold: forever() }, "agent_start"],
    ["in the text", { text: "one two three four", chunk: 4, hold: forever(), holdAfter: 4 }, "message_update"],
    [
      "in the arguments of a call",
      {
        text: "Run",
        toolCalls: [{ name: "bash", arguments: { command: "touch marker" }, chunk: 4 }],
        hold: forever(),
        holdAfter: 9,
      },
      "message_update",
    ],
  ];
  it.each(points)("an abort %s closes the connection, and the conversation goes on", async (_where, reply, until) => {
    const { fake, daemon } = await start(under);
    fake.script(reply, { text: "All right" });
    const began = daemon.frames.length;
    await ask(daemon, "prompt", { message: "go" });
    await wait(daemon, until, began);
    await fake.request(1);
    await ask(daemon, "abort");
    expect(await fake.requests[0]?.closed).toBe(true);
    await wait(daemon, "agent_end", began);
    expect(stopReason(daemon.frames.slice(began))).toMatchObject({ stopReason: "aborted" });
    await prompt(daemon, "and now?");
    expect(await lastText(daemon)).toBe("All right");
    expect(refusals(fake)).toEqual([]);
    expect(fake.requests).toHaveLength(2);
  });

  it("an abort while a tool runs ends the tool, and its call has one result", async () => {
    const { fake, daemon } = await start(under);
    fake.script({ toolCalls: [{ name: "bash", arguments: { command: "echo begun; sleep 60" } }] }, { text: "All right" });
    const began = daemon.frames.length;
    await ask(daemon, "prompt", { message: "go" });
    await wait(daemon, "tool_execution_start", began);
    await ask(daemon, "abort");
    await wait(daemon, "agent_end", began);
    expect(daemon.frames.slice(began).filter((frame) => frame.type === "tool_execution_end")).toHaveLength(1);
    await prompt(daemon, "and now?");
    expect(refusals(fake)).toEqual([]);
    expect(fake.requests).toHaveLength(2);
  });

  it.each([429, 500])("status %i is surfaced without retry, and retried when retry is on", async (status) => {
    const { fake, daemon } = await start(under);
    await ask(daemon, "set_auto_retry", { enabled: false });
    fake.script({ failure: { status, message: "Try later" } });
    const failed = await prompt(daemon, "go");
    expect(stopReason(failed)).toMatchObject({ stopReason: "error", errorMessage: expect.stringContaining("Try later") });
    expect(failed.filter((frame) => frame.type === "auto_retry_start")).toEqual([]);
    await ask(daemon, "set_auto_retry", { enabled: true });
    fake.script({ failure: { status, message: "Try later" } }, { text: "Recovered" });
    const frames = await prompt(daemon, "again");
    await eventually("the end of the chain", () => daemon.frames.some((frame) => frame.type === "auto_retry_end"));
    expect(frames.filter((frame) => frame.type === "auto_retry_start")).toHaveLength(1);
    expect(await lastText(daemon)).toBe("Recovered");
    expect(refusals(fake)).toEqual([]);
    expect(fake.requests).toHaveLength(3);
  });

  it("a stream that is cut is retried, and its half text is not replayed", async () => {
    const { fake, daemon } = await start(under);
    fake.script({ text: "half of it is here", chunk: 4, cutAfter: 4 }, { text: "Whole" });
    await prompt(daemon, "go");
    expect(await lastText(daemon)).toBe("Whole");
    fake.script({ text: "Bye" });
    await prompt(daemon, "thanks");
    expect(refusals(fake)).toEqual([]);
    expect(bodyOf(fake, -1)).not.toContain("half");
  });

  it("without a key the prompt fails and says where to put one", async () => {
    const fake = await under.open();
    open.push(fake);
    const { model } = under.options(fake);
    const daemon = use.start({ model, env: { ANTHROPIC_API_KEY: "", OPENAI_API_KEY: "" } });
    const began = daemon.frames.length;
    const id = "keyless";
    daemon.send({ id, type: "prompt", message: "go" });
    const failure = await wait(daemon, (frame) => frame.type === "response" && frame["success"] === false, began);
    expect(failure["error"]).toMatch(/_API_KEY|auth\.json|login/);
    expect((await request(daemon, "get_state"))["success"]).toBe(true);
    expect(fake.requests).toHaveLength(0);
  });
});
