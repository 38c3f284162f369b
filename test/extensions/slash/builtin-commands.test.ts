import { readFile } from "node:fs/promises";
import { join } from "node:path";
import {
  CommandError,
  defineCommand,
  defineService,
  defineSetting,
  defineSlot,
  defineTool,
  Extensions,
  type Model,
  Models,
  type ReloadReport,
  Settings,
  ThinkingLevel,
  type UnitInfo,
  z,
} from "mortise/extension";
import { afterEach, expect, test } from "vitest";
import prompt from "../../../extensions/prompting/prompt.ts";
import setFollowUpMode from "../../../extensions/queue-modes/set-follow-up-mode.ts";
import setInterruptMode from "../../../extensions/queue-modes/set-interrupt-mode.ts";
import setSteeringMode from "../../../extensions/queue-modes/set-steering-mode.ts";
import setSessionName from "../../../extensions/sessions/set-session-name.ts";
import knownSettings from "../../../extensions/settings/known-settings.ts";
import settingsUnit from "../../../extensions/settings/settings.ts";
import skillsUnit from "../../../extensions/skills/skills.ts";
import configUpdate from "../../../extensions/slash/config-update.ts";
import context from "../../../extensions/slash/context.ts";
import extensions from "../../../extensions/slash/extensions.ts";
import help from "../../../extensions/slash/help.ts";
import modelCommand from "../../../extensions/slash/model.ts";
import queue from "../../../extensions/slash/queue.ts";
import reload from "../../../extensions/slash/reload.ts";
import rename from "../../../extensions/slash/rename.ts";
import session from "../../../extensions/slash/session.ts";
import sessionInfoUpdate from "../../../extensions/slash/session-info-update.ts";
import settingsCommand from "../../../extensions/slash/settings.ts";
import skillsCommand from "../../../extensions/slash/skills.ts";
import slashCommands from "../../../extensions/slash/slash-commands.ts";
import thinking from "../../../extensions/slash/thinking.ts";
import todo from "../../../extensions/slash/todo.ts";
import tools from "../../../extensions/slash/tools.ts";
import usage from "../../../extensions/slash/usage.ts";
import { Bench } from "../settings/_bench.ts";

const benches: Bench[] = [];
afterEach(async () => {
  for (const bench of benches.splice(0)) await bench.close();
});

const builtins = [
  context,
  extensions,
  help,
  modelCommand,
  queue,
  reload,
  rename,
  session,
  settingsCommand,
  skillsCommand,
  thinking,
  todo,
  tools,
  usage,
];

const model = (id: string): Model => ({
  id,
  name: id,
  api: "offline",
  provider: "acme",
  baseUrl: "",
  reasoning: true,
  input: ["text"],
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
  contextWindow: 1000,
});
const catalogue = [model("small"), model("large")];

/** The parts of the model services that /model and /thinking use, over a real conversation. */
const modelUnits = [
  defineService(Models, {
    create: () => ({
      available: () => catalogue,
      all: () => catalogue,
      find: (provider, id) => catalogue.find((each) => each.provider === provider && each.id === id),
      resolve(selector) {
        const [name, level] = selector.split(":");
        const found = catalogue.find((each) => name === each.id || name === `acme/${each.id}`);
        return found && { model: found, thinkingLevel: level === undefined ? undefined : ThinkingLevel.parse(level) };
      },
      scoped: () => undefined,
      initial: () => undefined,
      hasKey: () => true,
      key: () => Promise.resolve({}),
      clamp: (_model, level) => level,
      refresh: () => Promise.resolve(),
    }),
  }),
  defineCommand({
    name: "set_model",
    group: "Model",
    summary: "",
    concurrency: "serial",
    params: z.object({ provider: z.string(), modelId: z.string() }),
    example: { params: {} },
    run: (ctx, { modelId }) => ctx.conversation.select({ model: catalogue.find((each) => each.id === modelId) }),
  }),
  defineCommand({
    name: "set_thinking_level",
    group: "Model",
    summary: "",
    concurrency: "serial",
    params: z.object({ level: ThinkingLevel }),
    example: { params: {} },
    run: (ctx, { level }) => ctx.conversation.select({ thinkingLevel: level === "max" ? "high" : level }),
  }),
];

async function start(files: Record<string, string> = {}) {
  const bench = await Bench.make(files);
  benches.push(bench);
  await bench
    .launch()
    .load(
      [
        ...builtins,
        settingsUnit,
        knownSettings,
        skillsUnit,
        slashCommands,
        prompt,
        configUpdate,
        sessionInfoUpdate,
        setSessionName,
        setSteeringMode,
        setFollowUpMode,
        setInterruptMode,
        ...modelUnits,
      ],
      "builtin",
      "builtin:slash",
    );
  const conversation = bench.converse();
  return {
    bench,
    conversation,
    /** What a prompt of this text leads to, in order: printed text, and every other frame. */
    async say(message: string) {
      const from = bench.frames.length;
      const response = await bench.request("prompt", { message });
      if (response["data"] === undefined && response["success"] === true) {
        await bench.frame("prompt_result", (frame) => frame["id"] === response["id"], from);
      }
      return bench.frames
        .slice(from)
        .map(({ type, id: _id, command: _command, ...fields }) =>
          type === "command_output" ? fields["text"] : { type, ...fields },
        );
    },
  };
}
const done = { type: "response", success: true, data: { agentInvoked: false } };

test("/help lists, explains and refuses", async () => {
  const { say } = await start();
  const [list, end] = await say("/help");
  expect(list).toMatch(/^\/model \[provider\/id\[:thinking\]\] +Show the models, or choose one$/m);
  expect(list).toMatch(/^\/usage +Show the tokens and the cost of the session$/m);
  expect(end).toEqual(done);
  expect(await say("/help /models")).toEqual([
    "/model [provider/id[:thinking]]\nShow the models, or choose one\nAlso: /models\nFrom: builtin",
    done,
  ]);
  expect(await say("/help:nope")).toEqual(['No slash command is called "/nope". /help lists them', done]);
});

test("/model shows and chooses; the host hears of it before the response", async () => {
  const { say, conversation } = await start();
  expect(await say("/model")).toEqual(["Model: none, thinking: off\n  acme/small\n  acme/large", done]);
  expect(await say("/models acme/large:high")).toEqual([
    "Model: acme/large, thinking: high",
    { type: "session_info_update", sessionId: conversation.id },
    { type: "config_update", model: catalogue[1], thinkingLevel: "high" },
    done,
  ]);
  expect(await say("/model huge")).toEqual(['No model matches "huge". /model lists the available ones', done]);
  expect(await say("/model arg")).toEqual(['No model matches "arg". Close: acme/large', done]);
  expect(conversation.selection.model?.id).toBe("large");
});

test("/thinking shows, sets, and says when the model knows less", async () => {
  const { say } = await start();
  expect(await say("/effort:LOW")).toEqual(["Thinking: low", { type: "config_update", thinkingLevel: "low" }, done]);
  expect(await say("/thinking max")).toEqual([
    'Thinking: high (the model does not know "max")',
    { type: "config_update", thinkingLevel: "high" },
    done,
  ]);
  expect((await say("/thinking ma"))[0]).toMatch(/the model does not know "max"/);
  for (const text of ["very", "m"]) {
    expect((await say(`/thinking ${text}`))[0]).toMatch(new RegExp(`^Unknown thinking level "${text}"\\. Levels: off, `));
  }
});

test("/rename names the session; without a title it says how", async () => {
  const { say, conversation } = await start();
  expect(await say("/rename My  parser")).toEqual([
    expect.stringMatching(/^Session: My\s+parser$/),
    { type: "session_info_update", title: conversation.log.name, sessionId: conversation.id },
    done,
  ]);
  expect(await say("/rename")).toEqual(["Usage: /rename <title>", done]);
  expect((await say("/session"))[0]).toMatch(/^Name +My\s+parser$/m);
  expect(await say("/session remove")).toEqual(["Usage: /session [info|delete]", done]);
});

test("/tools lists what is offered and chooses", async () => {
  const { bench, say } = await start();
  const tool = (name: string, hidden = false) =>
    defineTool({ name, description: `Does ${name}\n.`, params: z.object({}), hidden, run: () => "" });
  expect((await say("/tools"))[0]).toBe("The model is offered no tools");
  await bench.load([tool("read"), tool("bash"), tool("secret", true)]);
  expect((await say("/tools"))[0]).toBe("read  Does read .\nbash  Does bash .\nNot offered: secret");
  expect((await say("/tools read"))[0]).toBe("read  Does read .\nNot offered: bash, secret");
  expect((await say("/tools reed, bash"))[0]).toBe('No tool is called "reed". Tools: read, bash, secret');
  expect((await say("/tools all"))[0]).toContain("bash");
});

test("/context, /usage and /skills give numbers also for an empty session", async () => {
  const { say } = await start({ "home/skills/pdf/SKILL.md": "---\ndescription: For PDF\nhide: true\n---\nx" });
  expect((await say("/context"))[0]).toMatch(/^In use +unknown: no model is selected\n[\s\S]*\nMessages +none$/m);
  await say("/model small");
  expect((await say("/context"))[0]).toMatch(/^In use +\d+ of 1,000 tokens \(\d+\.\d %\), \d[\d,]* free$/m);
  expect((await say("/usage"))[0]).toMatch(/^Cost +\$0\.00$/m);
  expect((await say("/skills"))[0]).toBe("pdf  For PDF (user, not told to the model)");
});

test("/queue shows and sets modes for this process only", async () => {
  const { bench, say, conversation } = await start();
  expect((await say("/queue steering all"))[0]).toContain("Steering   0 queued, delivered all");
  expect(conversation.queue.steeringMode).toBe("all");
  expect(bench.ctx.use(Settings).origin("steeringMode").layer).toBe("runtime");
  for (const text of ["/queue nope", "/queue interrupt all", "/queue steering"]) {
    expect((await say(text))[0]).toMatch(/^Usage: \/queue steering all\|one-at-a-time or /);
  }
});

test("/settings shows values with their origin, writes the user's file and hides secrets", async () => {
  const { bench, say } = await start({
    "home/config.yml": "# mine\nproviders: {acme: {apiKey: CANARY, maxTokens: 5}}\nsteeringMode: all\n",
    "project/.mortise/config.yml": "followUpMode: all\n",
  });
  const file = join(bench.home, "config.yml");
  const [all] = await say("/settings");
  expect(all).toMatch(new RegExp(`^steeringMode +"all" \\(user: ${file}\\)$`, "m"));
  expect(all).toMatch(/^providers\.acme\.apiKey +"…" \(user/m);
  expect(all).toMatch(/^providers\.acme\.maxTokens +5 \(user/m);
  expect(all).not.toContain("CANARY");
  expect((await say("/settings providers"))[0]).not.toContain("CANARY");
  expect((await say("/settings todo.reminders.max"))[0]).toBe("todo.reminders.max = 3 (default)\nReminders per user prompt");
  expect(await say("/settings todo.reminders.max 7")).toEqual([`todo.reminders.max = 7 (user: ${file})`, done]);
  expect((await say("/settings tools.approval {bash: prompt}"))[0]).toContain('{"bash":"prompt"}');
  expect((await say("/settings followUpMode one-at-a-time"))[0]).toMatch(
    /^followUpMode = "all" \(project: .*\)\nYour file now has followUpMode, but another one above it decides$/,
  );
  expect((await say("/settings unset steeringMode"))[0]).toBe('steeringMode = "one-at-a-time" (default)');
  expect((await say("/settings steeringMode maybe"))[0]).toMatch(/^Cannot set "steeringMode": /);
  expect((await say("/settings nope"))[0]).toBe("nope = not set");
  expect(await readFile(file, "utf8")).toBe(
    "# mine\nproviders: {acme: {apiKey: CANARY, maxTokens: 5}}\ntodo:\n  reminders:\n    max: 7\ntools:\n  approval:\n    bash: prompt\nfollowUpMode: one-at-a-time\n",
  );
  for (const broken of ["{a: 1", "[1", '"open', "a: b: c"])
    expect((await say(`/settings my.own ${broken}`))[0]).toMatch(/^Cannot read the value as YAML/);
  for (const path of ["apiKeys.openai", "my.tokens.first", "my.secret"])
    expect(JSON.stringify([await say(`/settings ${path} CANARY-2`), await say(`/settings ${path}`)])).not.toMatch(/= "CANARY/);
  expect(JSON.stringify([await say("/settings"), await say("/settings apiKeys"), await say("/settings my")])).not.toContain(
    "CANARY-2",
  );
  expect((await say("/settings my.keepRecentTokens 5"))[0]).toContain("my.keepRecentTokens = 5");
});

test("/todo shows and changes the plan through its owner's command", async () => {
  const { bench, say } = await start();
  expect((await say("/todo"))[0]).toBe("No extension keeps todos");
  const Phases = z.array(z.object({ name: z.string(), tasks: z.array(z.object({ content: z.string(), status: z.string() })) }));
  const slot = defineSlot({ name: "todos", schema: Phases, initial: () => [] });
  const setTodos = defineCommand({
    name: "set_todos",
    group: "State",
    summary: "",
    concurrency: "serial",
    params: z.object({ phases: Phases }),
    example: { params: {} },
    run: (ctx, { phases }) => ctx.conversation.slot(slot).set(phases),
  });
  await bench.load([slot, setTodos]);
  expect((await say("/todo"))[0]).toBe("There are no todos");
  expect((await say("/todo done 1"))[0]).toBe("There are no todos");
  await say("/todo append write the parser");
  await say("/todo append test it");
  await say("/todo start 1");
  expect((await say("/todo start 2"))[0]).toBe("Tasks\n  1. [ ] write the parser\n  2. [>] test it");
  expect((await say("/todo done 1"))[0]).toBe("Tasks\n  1. [x] write the parser\n  2. [>] test it");
  expect((await say("/todo rm 2"))[0]).toBe("Tasks\n  1. [x] write the parser");
  expect((await say("/todo done 2"))[0]).toBe("Expected the number of a task, 1 to 1");
  expect((await say("/todo fly"))[0]).toMatch(/^Usage: \/todo /);
  expect((await say("/todo clear"))[0]).toBe("There are no todos");
});

test("/extensions and /reload go through the loader and end with prompt_result", async () => {
  const { bench, say } = await start();
  expect((await say("/extensions"))[1]).toContain("No extension provides the service");
  const unit = (id: string, more: Partial<UnitInfo>): UnitInfo => ({
    id,
    name: id.split("/").at(-1) ?? id,
    origin: "user",
    state: "active",
    generation: 1,
    contributes: [],
    shadows: [],
    shadowedBy: [],
    files: [],
    timings: { resolve: 0, transpile: 0, evaluate: 0, setup: 0, swap: 0 },
    handlers: { calls: 0, p95Ms: 0 },
    errors: 0,
    ...more,
  });
  const calls: unknown[] = [];
  const units = [
    unit("builtin/slash", { origin: "builtin" }),
    unit("/a/hello", { generation: 3, contributes: ["tool:hello"] }),
    unit("/b/broken", { state: "failed", error: "Unexpected token" }),
    unit("/a/twin", {}),
    unit("/b/twin", {}),
  ];
  const reports: ReloadReport[] = [
    { id: "/a/hello", outcome: "loaded", ms: 12.3 },
    { id: "/b/broken", outcome: "failed", error: "Unexpected token" },
    { id: "/a/twin", outcome: "unchanged" },
  ];
  await bench.load([
    defineService(Extensions, {
      create: () => ({
        list: () => units,
        reload: (id) => {
          calls.push(["reload", id]);
          return id === "/b/broken" ? Promise.reject(new CommandError("gone", "not_found")) : Promise.resolve(reports);
        },
        setEnabled: async (id, enabled) => void calls.push(["setEnabled", id, enabled]),
      }),
    }),
  ]);
  const ack = { type: "response", success: true };
  const result = { type: "prompt_result", agentInvoked: false };
  expect(await say("/extensions")).toEqual([
    ack,
    "hello   user; active; version 3; tool:hello\nbroken  user; failed; error: Unexpected token\ntwin    user; active\ntwin    user; active\nBuilt in: 1. /extensions all lists them",
    result,
  ]);
  expect((await say("/plugins all"))[1]).toMatch(/^slash +builtin; active$/m);
  expect((await say("/extensions disable hello"))[1]).toBe("hello is off");
  expect((await say("/extensions enable twin"))[1]).toBe('Several are called "twin": say one of /a/twin, /b/twin');
  expect((await say("/extensions enable nope"))[1]).toBe('No extension is called "nope"');
  expect((await say("/extensions what"))[1]).toMatch(/^Usage: /);
  expect((await say("/reload"))[1]).toBe("hello: loaded in 12 ms\nbroken: failed, the version before stays: Unexpected token");
  expect((await say("/reload broken"))[1]).toBe("gone");
  expect((await say("/reload nope"))[1]).toBe('No extension is called "nope"');
  expect(calls).toEqual([
    ["setEnabled", "/a/hello", false],
    ["reload", undefined],
    ["reload", "/b/broken"],
  ]);
});

test("an extension's setting appears in /settings at once", async () => {
  const { bench, say } = await start();
  await bench.load([defineSetting({ name: "mine.level", schema: z.number(), default: 2, summary: "How much" })], "user");
  expect((await say("/settings mine"))[0]).toBe("mine.level = 2 (default)\nHow much");
});
