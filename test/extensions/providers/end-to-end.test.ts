// The whole daemon against the strict fakes: what the loop sends after tools, aborts, cuts and failures is what the services take.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { startDaemon, type TestDaemon } from "../../../core/testing.ts";
import { type FakeServer, startFakeAnthropic } from "../../support/fake-anthropic.ts";
import { startFakeOpenAI } from "../../support/fake-openai.ts";

let daemon: TestDaemon;
let fake: FakeServer;
afterEach(async () => {
  await daemon.stop();
  await fake.close();
});

const services = [
  {
    name: "anthropic",
    open: startFakeAnthropic,
    options: { model: "anthropic/claude-haiku-4-5", thinking: "low" },
    env: (url: string) => ({ ANTHROPIC_API_KEY: "k", ANTHROPIC_BASE_URL: url }),
  },
  {
    name: "openai",
    open: () => startFakeOpenAI(),
    options: { model: "openai/gpt-5.1", thinking: "low" },
    env: (url: string) => ({ OPENAI_API_KEY: "k", OPENAI_BASE_URL: `${url}/v1` }),
  },
] as const;

describe.each(services)("$name", (service) => {
  async function start() {
    fake = await service.open();
    daemon = await startDaemon({
      watch: false,
      options: { ...service.options },
      env: { ...service.env(fake.url), PATH: process.env["PATH"] },
      files: { "config.yml": "retry:\n  baseDelayMs: 1\n", "cwd/a.txt": "content of a" },
    });
  }
  const refusals = () => fake.requests.map((request) => request.refusal).filter((refusal) => refusal !== undefined);
  const lastText = async () => (await daemon.ask("get_last_assistant_text"))["text"];

  it("runs tools, keeps thinking, and sends pairs that the service takes", async () => {
    await start();
    fake.script(
      {
        thinking: "I should look",
        text: "Looking",
        toolCalls: [
          { name: "read", arguments: { path: "a.txt" } },
          { name: "read", arguments: { path: "none" } },
        ],
      },
      { thinking: "Now I know", text: "It says: content of a" },
      { text: "You are welcome" },
    );
    await daemon.prompt("What is in a.txt?");
    expect(await lastText()).toBe("It says: content of a");
    await daemon.prompt("Thanks");
    expect(refusals()).toEqual([]);
    expect(JSON.stringify(fake.requests[1]?.body)).toContain("content of a");
    expect(fake.requests).toHaveLength(3);
  });

  it("takes blank prompts, at the beginning and behind an answer", async () => {
    await start();
    fake.otherwise({ text: "Yes?" });
    for (const text of ["", " \n", "hello"]) {
      await daemon.prompt(text);
      expect(await lastText()).toBe("Yes?");
    }
    expect(refusals()).toEqual([]);
    const body = fake.requests[1]?.body as { messages: { role: string }[] } | undefined;
    expect((body?.messages ?? []).map(({ role }) => role).filter((role) => role === "user" || role === "assistant")).toEqual([
      "user",
      "assistant",
      "user",
    ]);
  });

  it("goes on after an abort in the middle of a tool call's arguments", async () => {
    await start();
    fake.script(
      {
        text: "Writing",
        toolCalls: [{ name: "bash", arguments: { command: "touch marker" }, chunk: 4 }],
        hold: new Promise(() => {}),
        holdAfter: 9,
      },
      { text: "All right" },
    );
    daemon.send({ type: "prompt", message: "go" });
    await daemon.next((frame) => frame.type === "message_update");
    await daemon.ask("abort");
    expect(await fake.requests[0]?.closed).toBe(true);
    await daemon.prompt("And now?");
    expect(refusals()).toEqual([]);
    expect(await lastText()).toBe("All right");
    expect(existsSync(join(daemon.cwd, "marker"))).toBe(false);
  });

  it("never runs a call that the connection cut, and tries again (case 20)", async () => {
    await start();
    fake.script(
      { toolCalls: [{ name: "bash", arguments: { command: "touch marker" }, chunk: 4 }], cutAfter: 5 },
      { failure: { status: 529, message: "Overloaded" } },
      { text: "Recovered" },
    );
    await daemon.prompt("go");
    expect(await lastText()).toBe("Recovered");
    expect(refusals()).toEqual([]);
    expect(fake.requests).toHaveLength(3);
    expect(existsSync(join(daemon.cwd, "marker"))).toBe(false);
  });

  it("tells the model about a call that the output limit cut, and goes on (agent-semantics 12.27)", async () => {
    await start();
    fake.script({ toolCalls: [{ name: "bash", json: '{"command":"touch mar' }], stop: "length" }, { text: "In smaller steps" });
    await daemon.prompt("go");
    expect(await lastText()).toBe("In smaller steps");
    expect(refusals()).toEqual([]);
    expect(existsSync(join(daemon.cwd, "marker"))).toBe(false);
  });
});
