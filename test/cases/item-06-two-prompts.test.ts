// agent-semantics 12.6: a second prompt in the same write does not disturb the first.
import { expect, it } from "vitest";
import { ask, ofId, textOf, useProcesses, wait } from "./_support.ts";

const { start, service } = useProcesses();

it("refuses the second of two prompts under its id, after the acknowledgement (item 6)", async () => {
  const fake = await service();
  fake.script({ text: "answer to one" });
  const daemon = start(fake.daemon);
  const lines = ["one", "two"].map((message) => `${JSON.stringify({ id: message, type: "prompt", message })}\n`);
  daemon.send(Buffer.from(lines.join("")));
  await wait(daemon, "agent_end");
  expect(ofId(daemon, "one")).toEqual([{ id: "one", type: "response", command: "prompt", success: true }]);
  expect(ofId(daemon, "two")).toMatchObject([
    { success: true },
    { success: false, code: "busy", error: expect.stringContaining("Agent is already processing") },
  ]);
  const { messages } = (await ask(daemon, "get_messages")) as { messages: unknown[] };
  expect(messages.map(textOf)).toEqual(["one", "answer to one"]);
  expect(fake.requests).toHaveLength(1);
  expect(daemon.frames.filter((frame) => frame.type === "agent_start")).toHaveLength(1);
  // The refused text can be sent again.
  fake.script({ text: "answer to two" });
  daemon.send({ id: "again", type: "prompt", message: "two" });
  await wait(daemon, "agent_end");
  expect(await ask(daemon, "get_last_assistant_text")).toEqual({ text: "answer to two" });
});
