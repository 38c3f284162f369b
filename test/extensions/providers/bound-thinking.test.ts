// Thinking that the service takes back only behind exactly what stood in front of it: whatever changes that must not end a session.
import { afterEach, expect, it } from "vitest";
import { startDaemon, type TestDaemon } from "../../../core/testing.ts";
import { type FakeServer, startFakeAnthropic } from "../../support/fake-anthropic.ts";

let daemon: TestDaemon;
let fake: FakeServer;
afterEach(async () => {
  await daemon.stop();
  await fake.close();
});

async function start(model: string): Promise<void> {
  fake = await startFakeAnthropic({ bindsThinking: true });
  daemon = await startDaemon({
    watch: false,
    options: { model, thinking: "low" },
    env: { ANTHROPIC_API_KEY: "k", ANTHROPIC_BASE_URL: fake.url, PATH: process.env["PATH"] },
    files: { "config.yml": "retry: {baseDelayMs: 1}\ncompaction: {keepRecentTokens: 10}\n", "cwd/a.txt": "content of a" },
  });
}
const read = { thinking: "let me see", text: "Looking", toolCalls: [{ name: "read", arguments: { path: "a.txt" } }] };
const answer = { thinking: "I know", text: "It says so" };

async function prompt(): Promise<{ refused: number; thoughts: number[] }> {
  const from = fake.requests.length;
  fake.script(read, answer);
  await daemon.prompt("What is in a.txt?");
  expect((await daemon.ask("get_last_assistant_text"))["text"]).toBe("It says so");
  const requests = fake.requests.slice(from);
  const thoughts = requests.map(({ body }) => JSON.stringify(body).split('"type":"thinking"').length - 1);
  return { refused: requests.filter(({ refusal }) => refusal !== undefined).length, thoughts };
}
const tool = { name: "late", description: "Comes late", parameters: { type: "object", properties: {} } };

it.each<[string, () => Promise<unknown>]>([
  ["another tool", () => daemon.ask("set_host_tools", { tools: [tool] })],
  ["a compaction", () => daemon.ask("compact")],
])("%s costs one refused request, and the session thinks on", async (name, change) => {
  await start("anthropic/claude-opus-5-5");
  expect(await prompt()).toEqual({ refused: 0, thoughts: [0, 1] });
  expect(await prompt()).toEqual({ refused: 0, thoughts: [2, 3] });
  if (name === "a compaction") fake.script({ text: "What was said" });
  await change();
  const first = await prompt();
  expect(first.refused).toBe(1);
  // What is thought from then on is kept again.
  expect(first.thoughts.at(-1)).toBe(1);
  expect(await prompt()).toEqual({ refused: 0, thoughts: [2, 3] });
});

it("with a budget, a change in the middle of a turn pauses thinking until the next one", async () => {
  await start("anthropic/claude-haiku-4-5");
  let isIn = false;
  fake.script(read, (request) => {
    if (isIn) return answer;
    isIn = true;
    const message =
      "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.";
    expect(request.body).toMatchObject({ thinking: { type: "enabled" } });
    return { failure: { status: 400, type: "invalid_request_error", message } };
  });
  fake.script(answer);
  await daemon.prompt("What is in a.txt?");
  expect((await daemon.ask("get_last_assistant_text"))["text"]).toBe("It says so");
  expect(fake.requests.map(({ refusal }) => refusal)).toEqual([undefined, undefined, undefined]);
  expect(fake.requests[2]?.body).not.toHaveProperty("thinking");
});

it("goes back with its signature when the service keeps its text to itself", async () => {
  await start("anthropic/claude-opus-5");
  fake.script({ ...read, thinking: "" }, { ...answer, thinking: "" }, { text: "Well" });
  await daemon.prompt("What is in a.txt?");
  await daemon.prompt("And now?");
  expect(fake.requests.map(({ refusal }) => refusal)).toEqual([undefined, undefined, undefined]);
  const { messages } = (await fake.request(3)).body as { messages: { content: { type: string }[] }[] };
  const thoughts = messages.flatMap(({ content }) => content).filter(({ type }) => type === "thinking");
  expect(thoughts).toEqual([
    { type: "thinking", thinking: "", signature: expect.stringMatching(/./) },
    { type: "thinking", thinking: "", signature: expect.stringMatching(/./) },
  ]);
});

it("is refused without any having been sent: that is the end", async () => {
  await start("anthropic/claude-opus-5-5");
  const message = "messages.0.content.0: Invalid `signature` in `thinking` block";
  fake.script({ failure: { status: 400, type: "invalid_request_error", message } });
  await daemon.prompt("Go");
  expect(fake.requests).toHaveLength(1);
});
