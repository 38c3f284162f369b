// Commands through frames, over a whole daemon.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Model } from "mortise/extension";
import { afterEach, describe, expect, it } from "vitest";
import { type StartOptions, startDaemon, type TestDaemon } from "../../../core/testing.ts";
import { startFakeOpenAI } from "../../support/fake-openai.ts";

let daemon: TestDaemon;
const cleanUps: (() => Promise<void>)[] = [];
afterEach(async () => {
  await daemon.stop();
  for (const cleanUp of cleanUps.splice(0)) await cleanUp();
});
const start = async (options: StartOptions = {}) => {
  daemon = await startDaemon({ watch: false, env: {}, ...options });
  return daemon;
};
const eventsOf = (type: string) => daemon.frames.filter((frame) => frame.type === type);
const current = async () =>
  (await daemon.ask("get_state")) as { model?: { provider: string; id: string }; thinkingLevel?: string };

const local = `providers:
  local:
    baseUrl: http://127.0.0.1:9/v1
    api: openai-completions
    auth: none
    models:
      - { id: small }
      - { id: thinker, reasoning: true, thinking: { efforts: [low, high], defaultLevel: low } }
`;

describe("set_model", () => {
  it("chooses a model, answers with it and tells of the change", async () => {
    await start({ files: { "models.yml": local } });
    const response = await daemon.request("set_model", { provider: "local", modelId: "small" });
    expect(response).toMatchObject({
      success: true,
      data: {
        provider: "local",
        id: "small",
        name: "small",
        api: "openai-completions",
        baseUrl: "http://127.0.0.1:9/v1",
        contextWindow: 128_000,
        maxTokens: 16_384,
      },
    });
    expect(eventsOf("model_changed")).toHaveLength(1);
    expect(await current()).toMatchObject({ model: { provider: "local", id: "small" } });
    await daemon.ask("set_model", { provider: "local", modelId: "small" });
    expect(eventsOf("model_changed")).toHaveLength(1);
  });

  it("refuses what does not exist, what has no key and what enabledModels leaves out", async () => {
    await start({ files: { "models.yml": local, "config.yml": "enabledModels: [local/small, anthropic/*]\n" } });
    const failure = async (provider: string, modelId: string) =>
      (await daemon.request("set_model", { provider, modelId }))["error"];
    expect(await failure("provider", "model")).toBe("Model not found: provider/model");
    expect(await failure("local", "smal")).toBe("Model not found: local/smal");
    expect(await failure("local", "thinker")).toBe("Model not found: local/thinker");
    expect(await failure("anthropic", "claude-opus-5-5")).toBe("No API key for anthropic/claude-opus-5-5");
    expect(eventsOf("model_changed")).toHaveLength(0);
  });

  it("clamps the thinking level to the new model and sends one frame when it changes", async () => {
    await start({ files: { "models.yml": local } });
    await daemon.ask("set_model", { provider: "local", modelId: "thinker" });
    await daemon.ask("set_thinking_level", { level: "max" });
    expect(eventsOf("thinking_level_changed").at(-1)).toMatchObject({ thinkingLevel: "high" });
    const before = eventsOf("thinking_level_changed").length;
    await daemon.ask("set_model", { provider: "local", modelId: "small" });
    expect(await current()).toMatchObject({ thinkingLevel: "off" });
    expect(eventsOf("thinking_level_changed")).toHaveLength(before + 1);
  });

  it("gives the level back that a model in between could not follow, unless another was chosen", async () => {
    await start({ files: { "models.yml": local } });
    const choose = async (modelId: string) => {
      await daemon.ask("set_model", { provider: "local", modelId });
      return (await current()).thinkingLevel;
    };
    await choose("thinker");
    await daemon.ask("set_thinking_level", { level: "high" });
    expect(await choose("small")).toBe("off");
    expect(await choose("thinker")).toBe("high");
    await choose("small");
    await choose("thinker");
    await daemon.ask("set_thinking_level", { level: "low" });
    expect(await choose("thinker")).toBe("low");
    expect(await choose("small")).toBe("off");
    expect(await choose("thinker")).toBe("low");
  });

  it("waits for a server that is still listing its models, and does not hold the lane (item 19)", async () => {
    let answer: (() => void) | undefined;
    const held = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const fake = await startFakeOpenAI({ keyless: true, models: ["late-1"], listing: held });
    cleanUps.push(() => fake.close());
    await start({
      files: { "models.yml": `providers:\n  local:\n    baseUrl: ${fake.url}/v1\n    auth: none\n    discovery: true\n` },
    });
    const waiting = daemon.request("set_model", { provider: "local", modelId: "late-1" });
    await daemon.ask("get_state");
    expect(eventsOf("model_changed")).toHaveLength(0);
    answer?.();
    expect(await waiting).toMatchObject({ success: true, data: { provider: "local", id: "late-1" } });
    expect((await daemon.request("set_model", { provider: "local", modelId: "never" }))["error"]).toBe(
      "Model not found: local/never",
    );
  });
});

describe("a server that lists its models", () => {
  async function startLister(): Promise<{ answer: (status: number, ...ids: string[]) => void; asked: () => number }> {
    let [status, ids, asked]: [number, string[], number] = [503, [], 0];
    const server = createServer((_request, response) => {
      asked++;
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify({ data: ids.map((id) => ({ id })) }));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    cleanUps.push(() => new Promise((resolve) => server.close(() => resolve())));
    const { port } = server.address() as AddressInfo;
    const files = {
      "models.yml": `providers:\n  local: { baseUrl: 'http://127.0.0.1:${port}/v1', auth: none, discovery: true }\n`,
    };
    await start({ files });
    return {
      answer: (...next) => {
        [status, ...ids] = next;
      },
      asked: () => asked,
    };
  }
  const listed = async () =>
    ((await daemon.ask("get_available_models")) as { models: Model[] }).models
      .filter(({ provider }) => provider === "local")
      .map(({ id }) => id);

  it("and was started later is found by the name of a model, and by looking twice", async () => {
    const { answer } = await startLister();
    expect(await listed()).toEqual([]);
    answer(200, "one");
    expect(await daemon.request("set_model", { provider: "local", modelId: "one" })).toMatchObject({ success: true });
    expect(await listed()).toEqual(["one"]);
    // New ones as well; and what it had stays while it is away.
    answer(200, "one", "two");
    expect(await daemon.request("set_model", { provider: "local", modelId: "two" })).toMatchObject({ success: true });
    answer(500);
    expect((await daemon.request("set_model", { provider: "local", modelId: "three" }))["error"]).toContain("Model not found");
    expect(await listed()).toEqual(["one", "two"]);
  });

  it("and did not answer is asked again when the models are listed, once at a time, and its failure is told once", async () => {
    const { answer, asked } = await startLister();
    await listed();
    await Promise.all([listed(), listed(), listed()]);
    answer(200, "one");
    let known = await listed();
    while (known.length === 0) {
      // Frames in memory alone would not let the answer in.
      await new Promise((resolve) => setImmediate(resolve));
      known = await listed();
    }
    expect(known).toEqual(["one"]);
    const before = asked();
    await listed();
    await listed();
    expect(asked()).toBe(before);
    expect(eventsOf("notice")).toHaveLength(1);
  });
});

describe("cycle_model", () => {
  it("walks the models with a credential and leaves the offline ones out", async () => {
    await start({ files: { "models.yml": local }, options: { model: "local/small" } });
    expect(await daemon.request("cycle_model")).toMatchObject({ data: { model: { id: "thinker" }, isScoped: false } });
    expect(await daemon.request("cycle_model")).toMatchObject({
      data: { model: { id: "small" }, thinkingLevel: "off", isScoped: false },
    });
  });

  it("walks --models, skips entries without a credential, and gives null when there is no other", async () => {
    await start({
      files: { "models.yml": local },
      options: { model: "local/small", models: "local/small,openai/gpt-5,local/thinker" },
    });
    expect(await daemon.request("cycle_model")).toMatchObject({ data: { model: { id: "thinker" }, isScoped: true } });
    await daemon.stop();
    await start({ files: { "models.yml": local }, options: { models: "local/small" } });
    const response = await daemon.request("cycle_model");
    expect(response).toMatchObject({ success: true, data: null });
  });
});

describe("get_available_models", () => {
  it("lists what can be used, without headers or nulls (protocol-facts 6.12)", async () => {
    await start({
      env: { ANTHROPIC_API_KEY: "k" },
      files: {
        "models.yml": `${local}  work:\n    baseUrl: https://llm.example.com\n    api: anthropic-messages\n    apiKey: sk-CANARY-123\n    headers: { x-secret: CANARY }\n    models: [{ id: house }]\n`,
      },
    });
    const { models } = (await daemon.ask("get_available_models")) as { models: Record<string, unknown>[] };
    const providers = new Set(models.map((model) => model["provider"]));
    expect([...providers].sort()).toEqual(["anthropic", "local", "offline", "work"]);
    for (const model of models) {
      for (const field of ["id", "name", "api", "provider", "baseUrl"]) expect(model[field]).toEqual(expect.any(String));
      expect(Object.values(model)).not.toContain(null);
    }
    expect(JSON.stringify(models)).not.toContain("CANARY");
  });

  it("keeps the good providers of a models.yml with a bad one, and names the value", async () => {
    await start({ files: { "models.yml": `${local}  bad:\n    baseUrl: ftp://x\n    models: [{ id: 7 }]\n` } });
    const { models } = (await daemon.ask("get_available_models")) as { models: { provider: string }[] };
    expect(models.some((model) => model.provider === "local")).toBe(true);
    const notices = eventsOf("notice").map((frame) => String(frame["message"]));
    expect(notices.some((text) => /models\.yml: providers\.bad\.baseUrl: expected an http or https URL/.test(text))).toBe(true);
    expect(notices.some((text) => /providers\.bad\.models\.0\.id/.test(text))).toBe(true);
  });
});

describe("thinking levels", () => {
  it("cycles from the weakest to the strongest and back, and gives null without reasoning", async () => {
    await start({ files: { "models.yml": local }, options: { model: "local/thinker" } });
    expect(await current()).toMatchObject({ thinkingLevel: "low" });
    expect(await daemon.ask("get_available_thinking_levels")).toEqual({ levels: ["off", "low", "high"] });
    const levels = [];
    for (let n = 0; n < 4; n++) levels.push((await daemon.ask("cycle_thinking_level"))["level"]);
    expect(levels).toEqual(["high", "off", "low", "high"]);
    expect(eventsOf("thinking_level_changed").map((frame) => frame["thinkingLevel"])).toEqual(levels);
    await daemon.ask("set_model", { provider: "local", modelId: "small" });
    expect(await daemon.request("cycle_thinking_level")).toMatchObject({ success: true, data: null });
    expect(await daemon.ask("get_available_thinking_levels")).toEqual({ levels: ["off"] });
  });

  it("takes the nearest level, never reports auto, and refuses what is no level", async () => {
    await start({ files: { "models.yml": local }, options: { model: "local/thinker", thinking: "high" } });
    expect(await current()).toMatchObject({ thinkingLevel: "high" });
    await daemon.ask("set_thinking_level", { level: "medium" });
    expect(await current()).toMatchObject({ thinkingLevel: "low" });
    await daemon.ask("set_thinking_level", { level: "auto" });
    expect(await current()).toMatchObject({ thinkingLevel: "low" });
    expect(eventsOf("thinking_level_changed")).toHaveLength(1);
    expect(await daemon.request("set_thinking_level", { level: "loud" })).toMatchObject({
      success: false,
      code: "invalid_params",
    });
  });
});

describe("prompts", () => {
  it("says where a key can be put when there is none", async () => {
    await start({ options: { model: "anthropic/claude-opus-5-5" } });
    daemon.send({ id: "p", type: "prompt", message: "hi" });
    const failure = await daemon.next((frame) => frame["id"] === "p" && frame["success"] === false);
    expect(failure["error"]).toMatch(/^No API key found for anthropic\.\n\n.*ANTHROPIC_API_KEY/);
  });

  it("answers with offline/echo, tool call included", async () => {
    await start();
    const frames = await daemon.prompt('Hello\ncall read {"path":"none.txt"}');
    const text = JSON.stringify(frames.at(-1));
    expect(text).toContain("read answered:");
  });
});
