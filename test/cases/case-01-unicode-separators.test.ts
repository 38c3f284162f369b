// public-bugs 1, agent-semantics 12.1: U+2028, U+2029 and U+0085 are ordinary characters of a frame and of a session file.
import { expect, it } from "vitest";
import { ask, ofId, prompt, sessionFiles, textOf, useProcesses, wait } from "./_support.ts";

const { start, service } = useProcesses();

it("carries separators through stdin, the provider, tools, stdout and the session file (case 1, item 1)", async () => {
  const fake = await service();
  const text = "a\u2028b\u2029c\u0085d\u000be";
  fake.script(
    { toolCalls: [{ id: "call_1", name: "read", arguments: { path: "sep.txt" } }] },
    { text: ["before", "\u2028", "after"] },
  );
  const first = start({ ...fake.daemon, files: { "cwd/sep.txt": "x\u2028y\n" } });
  // Raw bytes, one physical line; the vertical tab has to be escaped in JSON.
  const line = `{"id":"u1","type":"prompt","message":"a\u2028b\u2029c\u0085d\\u000be"}\n`;
  expect(Buffer.from(line).includes(Buffer.from([0xe2, 0x80, 0xa8]))).toBe(true);
  first.send(Buffer.from(line));
  await wait(first, "agent_end");

  const body = fake.requests[0]?.body as { messages: { role: string; content: unknown }[] };
  expect(JSON.stringify(body.messages)).toContain(JSON.stringify(text).slice(1, -1));
  expect(fake.requests.map((request) => request.refusal)).toEqual([undefined, undefined]);
  expect(ofId(first, "u1")).toEqual([{ id: "u1", type: "response", command: "prompt", success: true }]);
  const end = first.frames.find((frame) => frame.type === "tool_execution_end");
  expect(textOf(end?.["result"])).toContain("x\u2028y");

  const { messages } = (await ask(first, "get_messages")) as { messages: unknown[] };
  expect(textOf(messages[0])).toBe(text);
  expect(textOf(messages.at(-1))).toBe("before\u2028after");
  expect(await first.end()).toBe(0);
  const lines = first.stdout().split("\n");
  expect(lines.pop()).toBe("");
  for (const each of lines) expect(JSON.parse(each)).toHaveProperty("type");
  expect(lines.length).toBe(first.frames.length);

  const second = start({ ...fake.daemon });
  const [file] = sessionFiles(first.home);
  expect(await ask(second, "switch_session", { sessionPath: file })).toEqual({ cancelled: false });
  const again = (await ask(second, "get_messages")) as { messages: unknown[] };
  expect(again.messages).toEqual(messages);
  expect(await second.end()).toBe(0);
});

it("keeps them in a session that goes on after it was opened (case 1)", async () => {
  const first = start();
  await prompt(first, "one\u2028two");
  const [file] = sessionFiles(first.home);
  expect(await first.end()).toBe(0);
  const second = start({ args: ["--session", String(file)] });
  await prompt(second, "three\u2029four");
  const { messages } = (await ask(second, "get_messages")) as { messages: unknown[] };
  expect(messages.map(textOf)).toEqual(["one\u2028two", "one\u2028two", "three\u2029four", "three\u2029four"]);
});
