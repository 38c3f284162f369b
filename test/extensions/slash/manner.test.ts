// What a host says of a prompt besides its text, where the text is a command: streamingBehavior and images of a skill, and the
// commands of `abort_and_prompt` (protocol-facts §1.3).
import { afterEach, describe, expect, it } from "vitest";
import { startDaemon, type TestDaemon } from "../../../core/testing.ts";
import type { Frame } from "../../../protocol/frame.ts";
import { Gate, type Script, says, scriptedModel, scriptedProvider } from "../../support/scripted-provider.ts";

let daemon: TestDaemon | undefined;
let gate: Gate | undefined;
afterEach(async () => {
  gate?.open();
  await daemon?.stop();
  daemon = undefined;
});

const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const images = [{ type: "image", data: PIXEL, mimeType: "image/png" }];
const files = {
  "extensions/deploy.ts": `
import { defineSlashCommand } from "mortise/extension";
export default [
  defineSlashCommand({ name: "deploy", description: "Prints", run: (ctx, args) => ctx.output("deploys " + args + " with " + (ctx.images?.length ?? 0)) }),
  defineSlashCommand({ name: "residual", description: "Goes on", run: (_ctx, args) => ({ prompt: "Please " + args }) }),
];
`,
  "prompts/review.md": "Review $1",
  "prompts/nothing.md": "",
  "skills/pdf/SKILL.md": "---\ndescription: PDF\n---\nUse pdftotext.",
};

/** A run that goes on until the gate opens; `then` answers what follows. */
async function streaming(...then: Script[]) {
  const opened = new Gate();
  gate = opened;
  const held: Script = [{ type: "text_start", index: 0 }, { type: "text_delta", index: 0, delta: "Well" }, opened, ...says("")];
  const provider = scriptedProvider(held, ...then);
  const d = await startDaemon({ extensions: { scripted: [[provider.definition]] }, files });
  daemon = d;
  d.daemon.conversations.attached.select({ model: scriptedModel });
  d.send({ id: "held", type: "prompt", message: "Go" });
  await d.next("message_update");
  return { d, provider, gate: opened };
}

describe("a skill while a run is going", () => {
  it.each([
    [undefined, "steering"],
    ["steer", "steering"],
    ["followUp", "followUp"],
  ] as const)("with streamingBehavior %s is queued as %s, with its images", async (streamingBehavior, queue) => {
    const { d, provider, gate: opened } = await streaming(says("Second"));
    const manner = streamingBehavior === undefined ? {} : { streamingBehavior };
    expect(await d.ask("prompt", { message: "/skill:pdf page 3", images, ...manner })).toEqual({ agentInvoked: true });
    const { steering, followUp } = d.daemon.conversations.attached.queue;
    expect({ steering: steering.length, followUp: followUp.length }).toEqual({ steering: 0, followUp: 0, [queue]: 1 });
    opened.open();
    await d.next("agent_end");
    const told = provider.requests[1]?.messages.findLast(({ role }) => role === "user");
    expect(JSON.stringify(told)).toContain("Use pdftotext.");
    expect(JSON.stringify(told)).toContain(PIXEL);
  });
});

describe("abort_and_prompt", () => {
  const outputs = (d: TestDaemon) => d.frames.filter(({ type }) => type === "command_output").map((frame) => frame["text"]);
  const results = (d: TestDaemon) => d.frames.filter(({ type }) => type === "prompt_result");

  it.each([
    ["/review it", "Review it"],
    ["/residual do it", "Please do it"],
    ["/help", "/help"],
    ["/skill:pdf", "/skill:pdf"],
    ["/unknown word", "/unknown word"],
  ])("takes %s for: %s", async (message, text) => {
    const { d, provider } = await streaming(says("Second"));
    await d.ask("abort_and_prompt", { message });
    const aborted = d.frames.findIndex(({ type }) => type === "agent_end");
    await d.next("agent_end", { after: aborted + 1 });
    expect(JSON.stringify(provider.requests[1]?.messages.findLast(({ role }) => role === "user"))).toContain(`"${text}"`);
    expect([outputs(d), results(d)]).toEqual([[], []]);
  });

  it("runs an extension's command after the abort; a file that cannot be used is a failure", async () => {
    const { d, provider } = await streaming();
    await d.ask("abort_and_prompt", { message: "/deploy it", images });
    await d.next((frame: Frame) => frame.type === "command_output", { after: 0 });
    expect(outputs(d)).toEqual(["deploys it with 1"]);
    expect(d.frames.filter(({ type }) => type === "agent_end")).toHaveLength(1);
    expect((await d.request("abort_and_prompt", { message: "/nothing" }))["error"]).toContain("is empty");
    await d.ask("get_state");
    expect(results(d)).toEqual([]);
    expect(provider.requests).toHaveLength(1);
  });
});
