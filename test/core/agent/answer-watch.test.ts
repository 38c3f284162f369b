// Watches over a streaming answer: what they see, and how an answer is cut off while the run goes on.
import { afterEach, describe, expect, it } from "vitest";
import { type AnswerDelta, answerStarting, defineHook, type Interruption } from "../../../core/extension.ts";
import { startDaemon, type TestDaemon } from "../../../core/testing.ts";
import { calls, Gate, type Script, says, scriptedModel, scriptedProvider } from "../../support/scripted-provider.ts";

let daemon: TestDaemon | undefined;
afterEach(async () => {
  await daemon?.stop();
  daemon = undefined;
});

async function start(watch: (delta: AnswerDelta) => Interruption | undefined, ...script: Script[]) {
  const provider = scriptedProvider(...script);
  const hook = defineHook(answerStarting, (value) => ({ ...value, watches: [...value.watches, { delta: watch }] }));
  daemon = await startDaemon({ extensions: { scripted: [[provider.definition, hook]] } });
  daemon.daemon.conversations.attached.select({ model: scriptedModel });
  return { daemon, provider };
}
const note = (text: string) => ({ role: "developer" as const, content: text, timestamp: 1, attribution: "agent" as const });

describe("a watch over an answer", () => {
  it("sees every delta once, in order, with the call it belongs to; whole arguments where no pieces came", async () => {
    const seen: AnswerDelta[] = [];
    const whole: Script = [
      { type: "toolcall_start", index: 0, id: "c2", name: "ls" },
      { type: "toolcall_end", index: 0, arguments: { path: "." } },
      { type: "done", stopReason: "toolUse" },
    ];
    const { daemon } = await start(
      (delta) => {
        seen.push(delta);
        return undefined;
      },
      calls({ id: "c1", name: "ls", args: { path: "." } }),
      whole,
      says("a", "b"),
    );
    await daemon.prompt("Go");
    const args = '{"path":"."}';
    expect(seen).toEqual([
      { kind: "tool", index: 0, delta: args, toolCallId: "c1", toolName: "ls" },
      { kind: "tool", index: 0, delta: args, toolCallId: "c2", toolName: "ls" },
      { kind: "text", index: 0, delta: "a" },
      { kind: "text", index: 0, delta: "b" },
    ]);
  });

  it("that throws is reported, not asked again, and the answer goes on", async () => {
    let asked = 0;
    const { daemon } = await start(
      () => {
        asked++;
        throw new Error("Broken watch");
      },
      says("a", "b"),
    );
    const frames = await daemon.prompt("Go");
    expect(asked).toBe(1);
    expect(JSON.stringify(frames.filter(({ type }) => type === "message_end").at(-1))).toContain('"ab"');
    expect(JSON.stringify(frames.filter(({ type }) => type === "extension_error"))).toContain("Broken watch");
  });

  it("cuts off an answer whose first call is complete: the call neither runs nor stays", async () => {
    const gate = new Gate();
    const twoCalls: Script = [
      ...calls({ id: "c1", name: "ls" }).slice(0, 4),
      { type: "text_start", index: 1 },
      { type: "text_delta", index: 1, delta: "stop" },
      gate,
    ];
    const { daemon, provider } = await start(
      (delta) => (delta.delta === "stop" ? { reason: "Enough", keep: true, messages: [note("Go on differently")] } : undefined),
      twoCalls,
      says("Fine"),
    );
    const frames = await daemon.prompt("Go");
    expect(frames.filter(({ type }) => type === "tool_execution_start")).toEqual([]);
    expect(frames.filter(({ type }) => type === "agent_end")).toHaveLength(1);
    expect(JSON.stringify(provider.requests[1]?.messages)).toContain("Go on differently");
    expect(JSON.stringify(daemon.daemon.conversations.attached.messages)).not.toContain("toolCall");
    expect(provider.refused).toEqual([]);
  });

  it("and an abort of the person at the same moment: the run ends aborted", async () => {
    const { daemon } = await start(
      () => {
        void daemon.daemon.conversations.attached.abort("By hand");
        return { reason: "Enough", keep: false, messages: [note("Go on")] };
      },
      says("a"),
      says("never"),
    );
    const frames = await daemon.prompt("Go");
    expect(frames.filter(({ type }) => type === "agent_end")).toHaveLength(1);
    expect(daemon.daemon.conversations.attached.lastAssistant()).toMatchObject({ stopReason: "aborted" });
    expect(JSON.stringify(frames)).not.toContain("never");
  });
});
