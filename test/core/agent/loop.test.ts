import { describe, expect, it } from "vitest";
import { defineTool, z } from "../../../core/extension.ts";
import { calls, done, Gate, says, scriptedProvider } from "../../support/scripted-provider.ts";
import { harness, textOf } from "./_harness.ts";

const echo = defineTool({
  name: "echo",
  description: "Gives its text back",
  params: z.object({ text: z.string() }),
  run: (_ctx, { text }) => text,
});

describe("a run", () => {
  it("follows the grammar of a plain turn", async () => {
    const h = harness({ provider: scriptedProvider(says("Hel", "lo")) });
    const submission = h.conversation.submit("Hi");
    expect(h.conversation.isStreaming).toBe(true);
    expect((await submission.settled).status).toBe("completed");
    expect(h.outline()).toEqual([
      "agent_start",
      "turn_start",
      "message_start",
      "message_end",
      "message_start",
      "message_update",
      "message_end",
      "turn_end",
      "agent_end",
    ]);
    expect(h.conversation.isStreaming).toBe(false);
    expect(h.conversation.messages.map(textOf)).toEqual(["Hi", "Hello"]);
    expect(h.errors).toEqual([]);
  });

  it("runs a tool call and asks again", async () => {
    const provider = scriptedProvider(calls({ id: "c1", name: "echo", args: { text: "back" } }), says("Done"));
    const h = harness({ provider, definitions: [echo] });
    const outcome = await h.conversation.submit("Go").settled;
    expect(h.outline()).toEqual([
      ...["agent_start", "turn_start", "message_start", "message_end"],
      ...["message_start", "message_update", "message_end"],
      ...["tool_execution_start", "tool_execution_end", "message_start", "message_end", "turn_end"],
      ...["turn_start", "message_start", "message_update", "message_end", "turn_end", "agent_end"],
    ]);
    expect(outcome.messages.map((message) => message.role)).toEqual(["user", "assistant", "toolResult", "assistant"]);
    expect(textOf(outcome.messages[2])).toBe("back");
    expect(provider.requests[0]?.tools.map((tool) => tool.name)).toEqual(["echo"]);
    expect(provider.refused).toEqual([]);
  });

  it("answers the acknowledgement first and is busy for a second prompt", async () => {
    const gate = new Gate();
    const h = harness({ provider: scriptedProvider([{ type: "text_start", index: 0 }, gate, done()], says("x")) });
    const first = h.conversation.submit("one");
    expect(h.frames).toEqual([]);
    await expect(h.conversation.submit("two")).rejects.toThrow("Agent is already processing. Use steer() or followUp()");
    gate.open();
    await first.settled;
  });
});
