// Mistakes in models.yml: each is told with the file and the key, and costs nothing but what it stands in.
import { readFileSync } from "node:fs";
import { afterEach, expect, it } from "vitest";
import { Models } from "../../../core/extension.ts";
import { startDaemon, type TestDaemon } from "../../../core/testing.ts";
import { startFakeOpenAI } from "../../support/fake-openai.ts";

let daemon: TestDaemon;
afterEach(() => daemon.stop());

const start = async (yml: string, env: NodeJS.ProcessEnv = {}) => {
  daemon = await startDaemon({ watch: false, env, files: { "models.yml": yml } });
  const { models } = (await daemon.ask("get_available_models")) as { models: { provider: string; id: string }[] };
  const told = daemon.frames.flatMap((frame) => (frame.type === "notice" ? [String(frame["message"])] : []));
  return {
    models: models.filter(({ provider }) => provider !== "offline").map(({ provider, id }) => `${provider}/${id}`),
    told: told.map((message) => message.replace(`${daemon.home}/models.yml: `, "")),
  };
};

const server = "baseUrl: http://127.0.0.1:9/v1, api: openai-completions, apiKey: k";

it("are told one by one, and what is right beside them is used", async () => {
  const { models, told } = await start(`x-common: &common { contextWindow: 1000 }
provider: {}
providers:
  nothing:
  text: yes
  address: { baseUrl: "localhost:11434", api: openai-completions, models: [{ id: a }] }
  misspelt: { baseURL: "http://127.0.0.1:9", api: openai-completions, apiKey: k, models: [{ id: a }] }
  bare: { apiKey: k, models: [{ id: a }] }
  number: { ${server.replace("apiKey: k", "apiKey: 5")}, models: [{ id: a }] }
  headers: { ${server}, headers: { "x y": a, ok: "!echo ü" }, models: [{ id: a }] }
  line: { ${server}, headers: { x: "a\\nb" }, models: [{ id: a }] }
  list:
    ${server.replaceAll(", ", "\n    ")}
    models:
      - { id: good, <<: *common }
      - { id: small, contextWindow: -1 }
      - { id: 5 }
      - text
      - { id: twice, name: first }
      - { id: twice, name: second }
      - { id: spelling, contextwindow: 5, Max_Tokens: 5, colour: red }
      - { id: levels, thinking: { efforts: [ultra] } }
  alien: { ${server.replace("openai-completions", "openai-chat")}, models: [{ id: a }] }
  anthropic: { apiKey: k, modelOverrides: { claude-haiku-4-5: { maxTokens: many }, claude-opus-5: { name: Mine } } }
`);
  expect(told).toEqual([
    "provider: unknown key, which is left out; did you mean providers?",
    "providers.nothing: Invalid input: expected object, received null",
    "providers.text: Invalid input: expected object, received string",
    "providers.address.baseUrl: expected an http or https URL",
    "providers.misspelt.baseURL: unknown key, which is left out; did you mean baseUrl?",
    "providers.misspelt.baseUrl: missing; a provider with its own models needs an address",
    "providers.bare.baseUrl: missing; a provider with its own models needs an address",
    "providers.bare.api: missing; name how the server is spoken to, e.g. openai-completions or anthropic-messages",
    "providers.number.apiKey: Invalid input: expected string, received number",
    "providers.headers.headers.x y: no name of a header",
    "providers.line.headers.x: holds what no header can: a line break or a letter beyond Latin-1",
    "providers.list.models.1.contextWindow: Too small: expected number to be >0",
    "providers.list.models.2.id: Invalid input: expected string, received number",
    "providers.list.models.3: Invalid input: expected object, received string",
    'providers.list.models.5.id: "twice" stands there twice; the last one counts',
    "providers.list.models.6.contextwindow: unknown key, which is left out; did you mean contextWindow?",
    "providers.list.models.6.Max_Tokens: unknown key, which is left out; did you mean maxTokens?",
    "providers.list.models.6.colour: unknown key, which is left out",
    'providers.list.models.7.thinking.efforts.0: Invalid option: expected one of "minimal"|"low"|"medium"|"high"|"xhigh"|"max"',
    "providers.anthropic.modelOverrides.claude-haiku-4-5.maxTokens: Invalid input: expected number, received string",
    'models.yml: providers.alien: nothing speaks the api "openai-chat" of alien/a; there are anthropic-messages, offline, openai-completions',
  ]);
  expect(models.filter((name) => !name.startsWith("anthropic/"))).toEqual(["list/good", "list/twice", "list/spelling"]);
  expect(models).toContain("anthropic/claude-opus-5");
  expect(daemon.daemon.kernel.services.use(Models).find("list", "good")).toMatchObject({ contextWindow: 1000 });
  await daemon.ask("get_available_models");
  expect(daemon.frames.filter(({ type }) => type === "notice")).toHaveLength(told.length);
});

it.each([
  ["- a", "the file: Invalid input: expected object, received array"],
  ["providers: [a]", "providers: Invalid input: expected record, received array"],
  ["providers: {a: [", /^Flow sequence .* at line 1, column \d+; nothing of it is used$/],
  [
    "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nproviders: *c",
    /alias/,
  ],
])("of the whole file are told: %s", async (yml, expected) => {
  const { told, models } = await start(yml);
  expect(told).toEqual([typeof expected === "string" ? expected : expect.stringMatching(expected)]);
  expect(models).toEqual([]);
  expect(readFileSync(`${daemon.home}/models.yml`, "utf8")).toBe(yml);
});

it("of compat cost the one key, and are told with the first request", async () => {
  const fake = await startFakeOpenAI();
  try {
    const compat = "{ maxTokensField: max_toks, supportsUsageInStreaming: false }";
    await start(`providers:
  local: { ${server.replace("http://127.0.0.1:9", fake.url)}, models: [{ id: a, compat: ${compat} }], modelOverrides: { b: { maxTokens: 7 } } }
`);
    for (const modelId of ["a", "a"]) {
      await daemon.ask("set_model", { provider: "local", modelId });
      fake.script({ text: "Yes" });
      await daemon.prompt("Go");
    }
    expect(fake.requests[0]?.refusal).toBeUndefined();
    expect(fake.requests[0]?.body).toMatchObject({ max_tokens: 16_384 });
    expect(fake.requests[0]?.body).not.toHaveProperty("stream_options");
    const told = daemon.frames.filter(({ type }) => type === "notice").map((frame) => frame["message"]);
    expect(told).toEqual([
      'models.yml: local/a: compat.maxTokensField: Invalid option: expected one of "max_tokens"|"max_completion_tokens"; it is left out',
    ]);
  } finally {
    await fake.close();
  }
});
