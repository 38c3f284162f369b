// A forced choice of tools: what each service is told, where it takes no such order, and what happens when it refuses.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  type Context,
  defineCommand,
  defineHook,
  defineTool,
  providerRequest,
  sideRequest,
  type ToolChoice,
  textResult,
  z,
} from "../../../core/extension.ts";
import { startDaemon, type TestDaemon } from "../../../core/testing.ts";
import { type FakeReply, type FakeServer, startFakeAnthropic } from "../../support/fake-anthropic.ts";
import { startFakeOpenAI } from "../../support/fake-openai.ts";

const planner = defineTool({
  name: "make_plan",
  description: "Plans",
  params: z.object({}),
  run: async () => textResult("planned"),
});
const plan: ToolChoice = { tool: "make_plan" };

/** What the requests of a test are to ask for, in order. */
let choices: (ToolChoice | undefined)[] = [];
const force = defineHook(providerRequest, (value) => {
  const toolChoice = choices.shift();
  return toolChoice && { ...value, request: { ...value.request, toolChoice } };
});
const aside = defineCommand({
  name: "x_aside",
  group: "Test",
  summary: "Asks beside the conversation, with a forced choice.",
  concurrency: "serial",
  params: z.object({}),
  result: z.object({ text: z.string() }),
  example: { params: {}, result: { text: "" } },
  async run(ctx: Context) {
    const { model } = ctx.conversation.selection;
    if (model === undefined) throw new Error("No model");
    const tools = ctx.conversation.toolSchemas();
    const messages = [{ role: "user" as const, content: "Go", timestamp: 1 }];
    const request = { model, systemPrompt: [], messages, tools, toolChoice: "required" as const, signal: ctx.signal };
    return { text: (await sideRequest(ctx, request)).text };
  },
});

let daemon: TestDaemon;
let fakes: { anthropic: FakeServer; openai: FakeServer };
beforeAll(async () => {
  fakes = { anthropic: await startFakeAnthropic(), openai: await startFakeOpenAI() };
  daemon = await startDaemon({
    env: {
      ...process.env,
      ANTHROPIC_API_KEY: "k",
      ANTHROPIC_BASE_URL: fakes.anthropic.url,
      OPENAI_API_KEY: "k",
      OPENAI_BASE_URL: `${fakes.openai.url}/v1`,
    },
    extensions: { forcing: [[force, planner, aside]] },
    files: { "config.yml": "retry: {baseDelayMs: 1}\n" },
  });
});
afterAll(async () => {
  await daemon.stop();
  for (const fake of Object.values(fakes)) await fake.close();
});
beforeEach(() => {
  choices = [];
});

async function use(selector: string): Promise<FakeServer> {
  const [provider = "", modelId = ""] = selector.split("/");
  await daemon.ask("new_session");
  await daemon.ask("set_model", { provider, modelId });
  daemon.daemon.conversations.attached.select({ thinkingLevel: "high" });
  const fake = provider === "openai" ? fakes.openai : fakes.anthropic;
  fake.requests.length = 0;
  return fake;
}

async function prompt(selector: string, asked: (ToolChoice | undefined)[], ...replies: FakeReply[]) {
  const fake = await use(selector);
  choices = asked;
  fake.script(...replies);
  await daemon.prompt("Go");
  return fake.requests.map(({ body, refusal }) => ({ body: body as Record<string, unknown>, refusal }));
}

function isThinking(body: Record<string, unknown> | undefined): boolean {
  const thinking = body?.["thinking"] as { type: string } | undefined;
  return thinking !== undefined && thinking.type !== "disabled";
}

it.each<[string, ToolChoice, unknown]>([
  ["anthropic/claude-haiku-4-5", "required", { type: "any" }],
  ["anthropic/claude-haiku-4-5", plan, { type: "tool", name: "make_plan" }],
  ["anthropic/claude-haiku-4-5", { tool: "gone" }, undefined],
  ["anthropic/claude-haiku-4-5", "none", { type: "none" }],
  ["anthropic/claude-haiku-4-5", "auto", undefined],
  ["anthropic/claude-opus-5", "required", { type: "any" }],
  ["anthropic/claude-opus-4-6", plan, { type: "tool", name: "make_plan" }],
  ["anthropic/claude-opus-5-5", "required", undefined],
  ["anthropic/claude-sonnet-5-5", plan, undefined],
  ["openai/gpt-5.1", "required", "required"],
  ["openai/gpt-5.1", plan, { type: "function", function: { name: "make_plan" } }],
  ["openai/gpt-5.1", { tool: "gone" }, undefined],
  ["openai/gpt-5.1", "auto", undefined],
])("%s is told what %j means there", async (model, choice, expected) => {
  const [first] = await prompt(model, [choice], { text: "Yes" });
  expect(first?.refusal).toBeUndefined();
  expect(first?.body["tool_choice"]).toEqual(expected);
  // The service forces no call on a model that thinks.
  const isForced = choice !== "none" && expected !== undefined;
  if (model.startsWith("anthropic")) expect(isThinking(first?.body)).toBe(!isForced);
  else expect(first?.body).toMatchObject({ reasoning_effort: "high" });
});

it.each(["anthropic/claude-haiku-4-5", "anthropic/claude-opus-5", "openai/gpt-5.1"])(
  "%s takes what comes after a call that no thinking led to",
  async (model) => {
    const call = { toolCalls: [{ name: "make_plan" }] };
    const requests = await prompt(model, [undefined, plan], { thinking: "hm", ...call }, call, call, { text: "Done" });
    expect(requests.map(({ refusal }) => refusal)).toEqual([undefined, undefined, undefined, undefined]);
    expect(requests.map(({ body }) => body["tool_choice"] !== undefined)).toEqual([false, true, false, false]);
  },
);

describe("a service that refuses the choice", () => {
  const refusals = [
    "tool_choice: forced tool use is not supported for this model.",
    "deepseek-reasoner does not support this tool_choice",
    "Thinking may not be enabled when tool_choice forces tool use.",
    "Invalid value: 'tool choice' must be auto",
  ];
  const refusal = (message: string, status = 400): FakeReply => ({ failure: { status, type: "invalid_request_error", message } });

  it.each(refusals)("is asked once more without it: %s", async (message) => {
    const after = daemon.frames.length;
    const requests = await prompt("openai/gpt-5.1", [plan, plan], refusal(message), { text: "Done" });
    expect(requests.map(({ body }) => body["tool_choice"] !== undefined)).toEqual([true, false]);
    expect((await daemon.ask("get_last_assistant_text"))["text"]).toBe("Done");
    const told = daemon.frames.slice(after).filter(({ type }) => type.startsWith("auto_retry") || type === "notice");
    expect(told).toEqual([]);
  });

  it("and refuses again, or for another reason, is not asked any more", async () => {
    const twice = await prompt("openai/gpt-5.1", [plan, plan], refusal(refusals[0] ?? ""), refusal(refusals[0] ?? ""));
    expect(twice).toHaveLength(2);
    const other = await prompt("openai/gpt-5.1", [plan], refusal("messages: bad"));
    expect(other).toHaveLength(1);
  });

  it("is asked once more beside the conversation, too", async () => {
    const fake = await use("openai/gpt-5.1");
    fake.script(refusal(refusals[0] ?? ""), { text: "Done" });
    expect(await daemon.ask("x_aside")).toEqual({ text: "Done" });
    expect(fake.requests.map(({ body }) => (body as Record<string, unknown>)["tool_choice"])).toEqual(["required", undefined]);
  });
});
