// One conversation over several services: whatever one of them left in the history, the others take it.
import { writeFileSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Models } from "../../../core/extension.ts";
import { startDaemon, type TestDaemon } from "../../../core/testing.ts";
import { type FakeReply, type FakeServer, startFakeAnthropic } from "../../support/fake-anthropic.ts";
import { startFakeOpenAI } from "../../support/fake-openai.ts";
import { png } from "./_anthropic.ts";

let daemon: TestDaemon;
let anthropic: FakeServer;
let openai: FakeServer;
beforeAll(async () => {
  anthropic = await startFakeAnthropic();
  openai = await startFakeOpenAI();
  daemon = await startDaemon({
    watch: false,
    env: { ANTHROPIC_API_KEY: "k", OPENAI_API_KEY: "k", PATH: process.env["PATH"] },
    files: {
      "config.yml": "retry: {baseDelayMs: 1, maxRetries: 1}\n",
      "models.yml": `providers:
  anthropic: { baseUrl: "${anthropic.url}" }
  openai: { baseUrl: "${openai.url}/v1" }
  local: { baseUrl: "${openai.url}/v1", api: openai-completions, apiKey: k, models: [{ id: deaf, supportsTools: false }, { id: thinker, input: [text, image], reasoning: true, compat: { replayReasoning: true } }] }
`,
      "cwd/a.txt": "content of a",
    },
  });
  writeFileSync(`${daemon.cwd}/a.png`, Buffer.from(png, "base64"));
});
afterAll(async () => {
  await daemon.stop();
  await anthropic.close();
  await openai.close();
});

const models = [
  "anthropic/claude-haiku-4-5",
  "anthropic/claude-opus-5",
  "anthropic/claude-sonnet-5-5",
  "openai/gpt-5.1",
  "openai/gpt-6-sol",
  "local/deaf",
  "local/thinker",
] as const;

/** Small and repeatable: the seed is the failure's name. */
function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((state / 2_147_483_648) * below);
  };
}

function reply(pick: (below: number) => number, isAnthropic: boolean): FakeReply {
  const ids = ["", "a|b", "x".repeat(90), `${"x".repeat(90)}y`, "call_1", "call_1", "toolu_1"];
  const id = () => {
    const chosen = ids[pick(ids.length)] || `c${pick(1e9)}`;
    return isAnthropic ? chosen.replace("|", "_") : chosen;
  };
  const thinking = pick(2) === 0 ? { thinking: pick(3) === 0 ? "" : "hm" } : {};
  const call = () => ({ id: id(), name: "read", arguments: { path: pick(2) === 0 ? "a.txt" : "a.png" } });
  switch (pick(8)) {
    case 0:
      return { ...thinking, text: "So it is" };
    case 1:
      return { ...thinking, toolCalls: [call(), call()] };
    case 2:
      return { ...thinking, text: "Reading", toolCalls: [call()] };
    case 3:
      return { ...thinking, text: "Half", cutAfter: 3 };
    case 4:
      return { ...thinking, toolCalls: [call(), { ...call(), json: '{"path":' }], stop: "length" };
    case 5:
      return { ...thinking, text: " \n", toolCalls: [call()] };
    case 6:
      return isAnthropic ? { ...thinking, redactedThinking: "xyz", text: "So" } : { failure: { status: 503 } };
    default:
      return { ...thinking, toolCalls: [call()], streamError: { type: "overloaded_error", message: "Overloaded" } };
  }
}

function select(pick: (below: number) => number): void {
  const [provider = "", id = ""] = models[pick(models.length)]?.split("/") ?? [];
  const model = daemon.daemon.kernel.services.use(Models).find(provider, id);
  const thinkingLevel = (["off", "low", "high"] as const)[pick(3)] ?? "off";
  daemon.daemon.conversations.attached.select({ model, thinkingLevel });
}

it.each(Array.from({ length: process.env["MORTISE_SOAK"] ? 70 : 3 }, (_, n) => n + 1))(
  "takes what the others left, seed %i",
  async (seed) => {
    const pick = random(seed);
    await daemon.ask("new_session");
    for (const fake of [anthropic, openai]) {
      fake.requests.length = 0;
      fake.otherwise(() => {
        // In the middle of a turn: its results go to another service than its calls came from.
        if (pick(4) === 0) select(pick);
        return pick(3) === 0 ? { text: "Done" } : reply(pick, fake === anthropic);
      });
    }
    for (let turn = 0; turn < 6; turn++) {
      select(pick);
      await daemon.prompt(`Prompt ${turn}`);
    }
    const refusals = [...anthropic.requests, ...openai.requests].flatMap(({ refusal }) => refusal ?? []);
    expect(refusals).toEqual([]);
  },
);
