// Compaction and handoff through the real providers against services that are as strict as the real ones.
import { afterEach, describe, expect, it } from "vitest";
import { startDaemon, type TestDaemon } from "../../../core/testing.ts";
import { type FakeServer, startFakeAnthropic } from "../../support/fake-anthropic.ts";
import { startFakeOpenAI } from "../../support/fake-openai.ts";

let d: TestDaemon;
let fake: FakeServer;
afterEach(async () => {
  await d.stop();
  await fake.close();
});

const services = [
  { name: "Messages API", api: "anthropic-messages", base: (url: string) => url, start: startFakeAnthropic },
  { name: "chat completions", api: "openai-completions", base: (url: string) => `${url}/v1`, start: () => startFakeOpenAI() },
];

describe.each(services)("over the $name", ({ api, base, start }) => {
  it("every request is accepted, before and after", async () => {
    fake = await start();
    const models = `providers:
  fake:
    baseUrl: ${base(fake.url)}
    api: ${api}
    apiKey: test-key
    models:
      - { id: m, reasoning: true, contextWindow: 100000, maxTokens: 4000, thinking: { efforts: [low, high], defaultLevel: low } }
`;
    d = await startDaemon({
      watch: false,
      env: {},
      options: { model: "fake/m" },
      files: { "models.yml": models, "config.yml": "compaction:\n  keepRecentTokens: 30\n", "cwd/a.txt": "text ".repeat(200) },
    });
    const call = (id: string) => ({ id, name: "read", arguments: { path: "a.txt" } });
    fake.script({ thinking: "hm", toolCalls: [call("t1"), call("t2")] }, { text: "Read both" });
    await d.prompt("Read it twice");
    fake.script({ text: "Again" });
    await d.prompt("x".repeat(300));
    fake.script({ text: "## Goal\nRead." });
    expect(await d.ask("compact")).toMatchObject({ summary: expect.stringContaining("## Goal\nRead.") });
    fake.script({ toolCalls: [call("t3")] }, { text: "Done" });
    await d.prompt("Once more");
    fake.script({ text: "The document" });
    expect(await d.request("handoff")).toMatchObject({ success: true, data: {} });
    fake.script({ text: "Fine" });
    await d.prompt("Go on");
    expect(fake.requests.flatMap((request) => request.refusal ?? [])).toEqual([]);
    expect(fake.requests).toHaveLength(8);
    expect(JSON.stringify(fake.requests[7]?.body)).toContain("The document");
  });
});
