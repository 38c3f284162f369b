// The Models service inside a daemon: where models and credentials come from, and in which order.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import {
  Credentials,
  defineLoginFlow,
  defineProvider,
  type Model,
  Models,
  THINKING_EFFORTS,
  type ThinkingLevel,
} from "mortise/extension";
import { afterEach, describe, expect, it } from "vitest";
import { type StartOptions, startDaemon, type TestDaemon } from "../../../core/testing.ts";
import { catalogue } from "../../../extensions/models/_catalogue.ts";
import { clampLevel, levelsOf, parseLevel } from "../../../extensions/models/_levels.ts";
import { select } from "../../../extensions/models/_selectors.ts";
import { Values } from "../../../extensions/models/_values.ts";
import { Model as ModelSchema } from "../../../protocol/model.ts";
import { startFakeAnthropic } from "../../support/fake-anthropic.ts";
import { startFakeOpenAI } from "../../support/fake-openai.ts";

let daemon: TestDaemon | undefined;
const cleanUps: (() => Promise<void>)[] = [];
afterEach(async () => {
  await daemon?.stop();
  daemon = undefined;
  for (const cleanUp of cleanUps.splice(0)) await cleanUp();
});
const start = async (options: StartOptions = {}) => {
  daemon = await startDaemon({ watch: false, env: {}, ...options });
  const models = daemon.daemon.kernel.services.use(Models);
  const credentials = daemon.daemon.kernel.services.use(Credentials);
  return { daemon, models, credentials };
};
const must = <T>(value: T | undefined): T => {
  if (value === undefined) throw new Error("Expected a value");
  return value;
};
const notices = () => (daemon?.frames ?? []).filter((frame) => frame.type === "notice").map((frame) => String(frame["message"]));

describe("credentials of a request", () => {
  const yml = "providers:\n  anthropic: { apiKey: from-yml }\n";

  it("come from --api-key, then models.yml, then auth.json, then the environment (agent-semantics §2.8)", async () => {
    const env = { ANTHROPIC_API_KEY: "from-env" };
    const auth = JSON.stringify({ anthropic: { type: "api_key", key: "from-auth" } });
    const keyWith = async (options: StartOptions) => {
      const { models } = await start(options);
      const key = await models.key(must(models.find("anthropic", "claude-opus-5-5")));
      await daemon?.stop();
      daemon = undefined;
      return key;
    };
    const cli = { options: { model: "anthropic/claude-opus-5-5", apiKey: "from-cli" } };
    expect(await keyWith({ env, ...cli, files: { "models.yml": yml, "auth.json": auth } })).toEqual({ apiKey: "from-cli" });
    expect(await keyWith({ env, files: { "models.yml": yml, "auth.json": auth } })).toEqual({ apiKey: "from-yml" });
    const unset = "providers:\n  anthropic: { apiKey: MY_OWN_KEY }\n";
    expect(await keyWith({ env, files: { "models.yml": unset, "auth.json": auth } })).toEqual({ apiKey: "from-auth" });
    expect(await keyWith({ env, files: { "models.yml": unset } })).toEqual({ apiKey: "from-env" });
  });

  it("are refused with a way out when there is none, and --api-key is for its own provider only", async () => {
    const { models } = await start({ options: { model: "openai/gpt-5", apiKey: "k" } });
    expect(models.hasKey("openai")).toBe(true);
    expect(models.hasKey("anthropic")).toBe(false);
    await expect(models.key(must(models.find("anthropic", "claude-opus-5-5")))).rejects.toMatchObject({
      kind: "auth",
      message: expect.stringMatching(/^No API key found for anthropic\.\n\n/),
    });
    expect(await models.key(must(models.find("offline", "echo")))).toEqual({});
  });

  it("travel as a header where the file says so, with values from the environment and commands", async () => {
    const { models } = await start({
      env: { TEAM: "blue" },
      files: {
        "models.yml": `providers:
  work:
    baseUrl: https://llm.example.com
    api: anthropic-messages
    apiKey: "!printf secret-1"
    authHeader: true
    headers: { x-team: $TEAM, x-plain: plain }
    models: [{ id: house, headers: { x-model: TEAM } }]
`,
      },
    });
    expect(await models.key(must(models.find("work", "house")))).toEqual({
      headers: { authorization: "Bearer secret-1", "x-team": "blue", "x-plain": "plain", "x-model": "blue" },
    });
  });

  it("are renewed before they expire, once for all that ask (agent-semantics §2.8)", async () => {
    let renewals = 0;
    const flow = defineLoginFlow({
      name: "acme",
      displayName: "Acme",
      run: async () => ({ type: "oauth", access: "first" }),
      refresh: async () => {
        renewals++;
        return { type: "oauth", access: "second", refresh: "r2", expires: Date.now() + 3_600_000 };
      },
      apiKey: (credential) => (credential.type === "oauth" ? `token ${credential.access}` : ""),
    });
    const model: Model = { ...must(catalogue[0]), id: "a1", provider: "acme", api: "acme" };
    const provider = defineProvider({ name: "acme", summary: "Acme", needsKey: true, models: [model], async *stream() {} });
    const { models, credentials } = await start({ extensions: { acme: [flow, provider] } });
    await credentials.set("acme", { type: "oauth", access: "first", refresh: "r1", expires: Date.now() + 1000 });
    const keys = await Promise.all([models.key(model), models.key(model), models.key(model)]);
    expect(keys.map(({ apiKey }) => apiKey)).toEqual(["token second", "token second", "token second"]);
    expect(renewals).toBe(1);
    expect(models.available().some(({ id }) => id === "a1")).toBe(true);
  });
});

describe("values of models.yml", () => {
  it("run a command once per process, report failures without output, and end one that hangs", async () => {
    const values = new Values(() => ({ ...process.env, NAME: "named\n" }), 300);
    const [one, two] = await Promise.all([values.resolve("!date +%N"), values.resolve("!date +%N")]);
    expect(one).toBe(two);
    expect(await values.resolve("!date +%N")).toBe(one);
    expect(await values.resolve("NAME")).toBe("named");
    expect(await values.resolve("$" + "{NAME}")).toBe("named");
    expect(await values.resolve(" literal\n")).toBe("literal");
    expect(values.isSet("  ")).toBe(false);
    await expect(values.resolve("!echo CANARY; exit 3")).rejects.toMatchObject({
      kind: "auth",
      message: expect.stringContaining("ended with code 3"),
    });
    await expect(values.resolve("!true")).rejects.toThrow("printed nothing");
    await expect(values.resolve("!echo one; echo two")).rejects.toThrow("printed more than one line");
    await expect(values.resolve("!yes")).rejects.toThrow("printed more than any key");
    await expect(values.resolve("!sleep 60")).rejects.toThrow("gave nothing within 0.3 s");
    expect([...values.secrets]).toEqual(expect.arrayContaining([one, "named", "literal"]));
    expect(values.isSet("$NOT_THERE")).toBe(false);
  });

  it("do not wait for what a command leaves in the background with its output open", async () => {
    const values = new Values(() => process.env);
    expect(await values.resolve("!sleep 8 & echo key")).toBe("key");
  });

  it("are refused before they are sent when no request can carry them, and never quoted", async () => {
    const server = "baseUrl: http://127.0.0.1:9, api: openai-completions, models: [{ id: m }]";
    const { models } = await start({
      files: {
        "models.yml": `providers:
  bell: { ${server}, apiKey: '!printf "CANARY\\007x"' }
  letters: { ${server}, apiKey: "CANARY-ключ" }
  header: { ${server}, apiKey: k, headers: { x-team: '!printf "CANARY\\001"' } }
`,
      },
      env: { PATH: process.env["PATH"] },
    });
    for (const [provider, what] of [
      ["bell", "API key of bell"],
      ["letters", "API key of letters"],
      ["header", 'header "x-team" of header'],
    ] as const) {
      const error = await models.key(must(models.find(provider, "m"))).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ kind: "auth", message: expect.stringContaining(`The ${what} holds a character`) });
      expect(String(error)).not.toContain("CANARY");
    }
  });

  it("end with the daemon", async () => {
    const values = new Values(() => process.env);
    const waiting = expect(values.resolve("!sleep 60")).rejects.toThrow("was ended with the daemon");
    values.close();
    await waiting;
  });
});

describe("which model a conversation starts with", () => {
  const state = async () => (await must(daemon).ask("get_state")) as { model?: Model; thinkingLevel: string };

  it("is the one of the command line, with its level", async () => {
    await start({ options: { model: "anthropic/claude-haiku-4-5:high" } });
    expect(await state()).toMatchObject({ model: { id: "claude-haiku-4-5" }, thinkingLevel: "high" });
  });

  it("is the first of --models, then the saved default, then the first with a credential, never an offline one", async () => {
    const env = { OPENAI_API_KEY: "k", ANTHROPIC_API_KEY: "k" };
    const none = { model: undefined } as never;
    const modelWith = async (options: StartOptions) => {
      await start(options);
      const found = (await state()).model;
      await daemon?.stop();
      daemon = undefined;
      return found && `${found.provider}/${found.id}`;
    };
    const files = { "config.yml": "defaultModel: openai/gpt-5.1\n" };
    expect(await modelWith({ env, files, options: { ...(none as object), models: "gpt-4.1-mini,openai/*" } })).toBe(
      "openai/gpt-4.1-mini",
    );
    expect(await modelWith({ env, files, options: none })).toBe("openai/gpt-5.1");
    expect(await modelWith({ env, options: none })).toBe("anthropic/claude-opus-5-5");
    expect(await modelWith({ env: { OPENAI_API_KEY: "k" }, options: none })).toBe("openai/gpt-6.1-sol");
    expect(await modelWith({ options: none })).toBeUndefined();
  });

  it("may be one that nobody has listed yet, of a service we know; anything else is told", async () => {
    const { models } = await start({ env: { OPENAI_API_KEY: "k" }, options: { model: "openai/gpt-9" } });
    expect(await state()).toMatchObject({ model: { provider: "openai", id: "gpt-9", baseUrl: "https://api.openai.com/v1" } });
    expect(models.find("openai", "gpt-9")).toBeUndefined();
    await daemon?.stop();
    await start({ options: { model: "nowhere/at-all" } });
    expect((await state()).model).toBeUndefined();
    expect(notices().some((text) => text.startsWith("Model not found: nowhere/at-all"))).toBe(true);
  });
});

describe("where models come from", () => {
  it("is the catalogue, moved by the environment, changed by models.yml", async () => {
    const { models } = await start({
      env: { ANTHROPIC_BASE_URL: "http://127.0.0.1:1" },
      files: {
        "models.yml": `providers:
  anthropic:
    modelOverrides:
      claude-opus-5-5: { name: Big, maxTokens: 1000, cost: { input: 9 } }
  openai:
    baseUrl: http://127.0.0.1:2/v1
`,
      },
    });
    expect(models.find("anthropic", "claude-opus-5-5")).toMatchObject({
      name: "Big",
      maxTokens: 1000,
      cost: { input: 9, output: 20 },
      baseUrl: "http://127.0.0.1:1",
    });
    expect(models.find("openai", "gpt-5")).toMatchObject({ baseUrl: "http://127.0.0.1:2/v1", name: "GPT-5" });
    expect(models.all().every((model) => ModelSchema.safeParse(model).success)).toBe(true);
  });

  it("follows models.yml while the daemon runs, and keeps the last good content of a broken file", async () => {
    const { models } = await start({ watch: true, files: { "models.yml": "providers: {}\n" } });
    const has = (id: string) => models.find("live", id) !== undefined;
    const write = (text: string) => must(daemon).write("models.yml", text);
    write("providers:\n  live: { baseUrl: 'http://127.0.0.1:1', api: openai-completions, auth: none, models: [{ id: one }] }\n");
    await expect.poll(() => has("one"), { timeout: 5000 }).toBe(true);
    write("providers: [broken\n");
    await expect.poll(() => notices().some((text) => text.includes("its last content is used")), { timeout: 5000 }).toBe(true);
    expect(has("one")).toBe(true);
  });

  it("is not the models.yml of a project that nobody trusts", async () => {
    const file =
      "providers:\n  evil: { baseUrl: 'http://127.0.0.1:1', api: openai-completions, apiKey: '!touch marker', models: [{ id: one }] }\n";
    const { models } = await start({ files: { "cwd/.mortise/models.yml": file } });
    expect(models.find("evil", "one")).toBeUndefined();
    await daemon?.stop();
    const trusted = await start({ files: { "cwd/.mortise/models.yml": file }, options: { trust: true } });
    expect(trusted.models.find("evil", "one")).toBeDefined();
  });

  it("is what a server lists; one that does not answer is told once and costs the others nothing", async () => {
    const fake = await startFakeOpenAI({ models: ["m1", "m2"] });
    const silent = await startFakeOpenAI({ keyless: true, listing: new Promise(() => {}) });
    cleanUps.push(
      () => fake.close(),
      () => silent.close(),
    );
    await start({
      files: {
        "config.yml": "models:\n  discoveryTimeoutMs: 200\n",
        "models.yml": `providers:
  good: { baseUrl: '${fake.url}/v1', apiKey: key-1, discovery: { type: openai } }
  silent: { baseUrl: '${silent.url}/v1', auth: none, discovery: true }
  known: { baseUrl: 'http://127.0.0.1:9/v1', api: openai-completions, auth: none, models: [{ id: k }] }
`,
      },
    });
    const { models } = (await must(daemon).ask("get_available_models")) as { models: Model[] };
    const names = models.map((model) => `${model.provider}/${model.id}`);
    expect(names).toEqual(expect.arrayContaining(["good/m1", "good/m2", "known/k"]));
    expect(names.some((name) => name.startsWith("silent/"))).toBe(false);
    expect(notices().filter((text) => text.includes("no answer within 0.2 s"))).toHaveLength(1);
  });
});

describe("selectors", () => {
  const pool = [{ ...must(catalogue[0]), provider: "openrouter", id: "anthropic/claude-opus:free" }, ...catalogue];
  it.each<[string, string | undefined, ThinkingLevel | undefined]>([
    ["anthropic/claude-opus-5-5", "claude-opus-5-5", undefined],
    ["claude-opus-5-5", "claude-opus-5-5", undefined],
    ["CLAUDE-opus-5-5:HIGH", "claude-opus-5-5", "high"],
    ["claude-opus-5-5:xh", "claude-opus-5-5", "xhigh"],
    ["claude-opus-5-5:m", undefined, undefined],
    ["openrouter/anthropic/claude-opus:free", "anthropic/claude-opus:free", undefined],
    ["anthropic/claude-opus:free:low", "anthropic/claude-opus:free", "low"],
    ["claude-haiku-4", "claude-haiku-4-5", undefined],
    ["claude-opus", undefined, undefined],
    ["gpt-5", "gpt-5", undefined],
    ["", undefined, undefined],
  ])("%s is %s at %s", (text, id, level) => {
    const found = select(text, [pool]);
    expect([found?.model.id, found?.thinkingLevel]).toEqual([id, level]);
  });
});

describe("thinking levels", () => {
  const efforts = fc.uniqueArray(fc.constantFrom(...THINKING_EFFORTS), { minLength: 1 });
  const off = fc.constantFrom("omit" as const, "disabled" as const, "never" as const);
  const levels: ThinkingLevel[] = ["off", ...THINKING_EFFORTS];

  it("clamp to one that the model has, keep those it has, and never turn thinking off by asking for some", () => {
    fc.assert(
      fc.property(efforts, off, fc.constantFrom(...levels), fc.boolean(), (list, how, level, reasoning) => {
        const model: Model = { ...must(catalogue[0]), reasoning, thinking: { mode: "effort", efforts: list, off: how } };
        const clamped = clampLevel(model, level);
        expect(levelsOf(model)).toContain(clamped);
        expect(clampLevel(model, clamped)).toBe(clamped);
        if (!reasoning) expect(clamped).toBe("off");
        else if (level !== "off") expect(clamped).not.toBe("off");
        else expect(clamped === "off").toBe(how !== "never");
      }),
      { numRuns: process.env["MORTISE_SOAK"] ? 5000 : 200 },
    );
  });

  it("are read by unambiguous beginnings", () => {
    expect(["of", "mi", "lo", "ME", "hi", "x", "xh", "ma", "m", "loud"].map(parseLevel)).toEqual([
      "off",
      "minimal",
      "low",
      "medium",
      "high",
      undefined,
      "xhigh",
      "max",
      undefined,
      undefined,
    ]);
  });
});

describe("secrets (case 27)", () => {
  it("of every source stay out of frames and files when the service quotes them", async () => {
    const fake = await startFakeAnthropic();
    cleanUps.push(() => fake.close());
    const canaries = { auth: "sk-live-CANARY1-aaaaaaaa", env: "sk-live-CANARY2-bbbbbbbb", header: "CANARY3-header-value" };
    fake.otherwise((request) => ({
      failure: {
        status: 401,
        type: "authentication_error",
        message: `refused ${JSON.stringify(request.headers)} ${Object.values(canaries).join(" ")}`,
      },
    }));
    const { daemon: running } = await start({
      env: { ANTHROPIC_API_KEY: canaries.env, ANTHROPIC_BASE_URL: fake.url },
      options: { model: "anthropic/claude-opus-5-5" },
      files: {
        "auth.json": JSON.stringify({ anthropic: { type: "api_key", key: canaries.auth } }),
        "models.yml": "providers:\n  anthropic: { headers: { x-extra: EXTRA } }\n",
      },
    });
    const frames = await running.prompt("hi");
    expect(fake.requests[0]?.headers["x-api-key"]).toBe(canaries.auth);
    expect(JSON.stringify(frames)).toContain("401");
    await running.ask("get_state");
    await running.ask("get_available_models");
    expect(JSON.stringify(running.frames)).not.toMatch(/CANARY[12]/);
    for (const file of filesBelow(running.home)) {
      if (file.endsWith("auth.json")) continue;
      expect(readFileSync(file, "utf8"), file).not.toMatch(/CANARY[12]/);
    }
  });
});

function filesBelow(directory: string): string[] {
  return readdirSync(directory).flatMap((name) => {
    const path = join(directory, name);
    return statSync(path).isDirectory() ? filesBelow(path) : [path];
  });
}
