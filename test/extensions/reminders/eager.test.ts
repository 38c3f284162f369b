// `todo.eager` and `agent.delegation`: what follows the first prompt of a session, and the plan that must come first
// (agent-semantics §5, §6).
import { afterEach, expect, it } from "vitest";
import { startDaemon, type TestDaemon } from "../../../core/testing.ts";
import { calls, type Script, says, scriptedModel, scriptedProvider } from "../../support/scripted-provider.ts";

let daemon: TestDaemon | undefined;
afterEach(async () => {
  await daemon?.stop();
  daemon = undefined;
});

async function start(config: string, script: Script[]) {
  const provider = scriptedProvider(...script);
  const d = await startDaemon({ extensions: { scripted: [[provider.definition]] }, files: { "config.yml": config } });
  daemon = d;
  d.daemon.conversations.attached.select({ model: scriptedModel });
  /** Texts of the session so far that neither a person nor the model wrote. */
  const advice = async () => {
    const { messages } = (await d.ask("get_messages")) as { messages: { role: string; content: string }[] };
    return messages.filter(({ role }) => role === "developer").map(({ content }) => content);
  };
  const results = async () => {
    const { messages } = (await d.ask("get_messages")) as { messages: { role: string; toolName: string; isError: boolean }[] };
    return messages.filter(({ role }) => role === "toolResult").map(({ toolName, isError }) => [toolName, isError]);
  };
  return { d, provider, advice, results };
}
const ls = (id: string) => calls({ id, name: "ls" });
const plans = (id: string, items: unknown) => calls({ id, name: "todo", args: { op: "init", items } });
const tick = (id: string) => calls({ id, name: "todo", args: { op: "done" } });

it.each([
  ["todo: {eager: preferred}", /more than two steps/],
  ["todo: {eager: always}", /before you use any other tool/],
  ["agent: {delegation: always}", /hand them to subagents/],
  ["task: {eager: always}", /hand them to subagents/],
])("%s follows the first prompt, and no other", async (config, text) => {
  const { d, provider, advice } = await start(config, [says("Yes?"), says("Well?")]);
  await d.prompt("Go");
  expect(await advice()).toEqual([expect.stringMatching(text)]);
  expect(JSON.stringify(provider.requests[0]?.messages.at(-1))).toMatch(text);
  await d.prompt("Again");
  expect(await advice()).toHaveLength(1);
  expect(provider.refused).toEqual([]);
});

it.each([
  "",
  "agent: {delegation: preferred}",
  "todo: {eager: always, enabled: false}",
  "agent: {delegation: always, maxNestedSpawnDepth: 0}",
])("nothing follows it with: %s", async (config) => {
  const { d, advice } = await start(config, [says("Yes?")]);
  await d.prompt("Go");
  expect(await advice()).toEqual([]);
});

it("todo.eager always: no other tool works for the first prompt until there is a plan", async () => {
  const { d, provider, results } = await start("todo: {eager: always}", [
    ls("a"),
    plans("b", undefined),
    ls("c"),
    plans("d", ["Look"]),
    ls("e"),
    tick("f"),
    says("Done"),
  ]);
  await d.prompt("Go");
  expect(await results()).toEqual([
    ["ls", true],
    ["todo", true],
    ["ls", true],
    ["todo", false],
    ["ls", false],
    ["todo", false],
  ]);
  expect(JSON.stringify(provider.requests[1]?.messages.at(-1))).toContain("Write the plan with the todo tool first");
});

const planning = { tool: "todo" };

it("todo.eager always: the model has no other choice, but three times at most and until there is a plan", async () => {
  const { d, provider } = await start("todo: {eager: always}", [
    says("I would rather not"),
    ...[plans("b", undefined), plans("c", ["Look"]), ls("d"), tick("e"), says("Done")],
  ]);
  await d.prompt("Go");
  // Services that force nothing may give text: then the user is heard first.
  expect(provider.requests.map(({ toolChoice }) => toolChoice)).toEqual([planning]);
  await d.ask("new_session");
  await d.prompt("Go");
  expect(provider.requests.slice(1).map(({ toolChoice }) => toolChoice)).toEqual([
    planning,
    planning,
    undefined,
    undefined,
    undefined,
  ]);
  await d.ask("new_session");
  await d.ask("set_todos", { phases: [] });
  provider.push(...["f", "g", "h", "i"].map((id) => plans(id, undefined)), says("I cannot"));
  await d.prompt("Go");
  expect(provider.requests.slice(6).map(({ toolChoice }) => toolChoice)).toEqual([
    planning,
    planning,
    planning,
    undefined,
    undefined,
  ]);
});

it("todo.eager always: later prompts, and a plan of the host's, need none", async () => {
  const { d, provider, results, advice } = await start("todo: {eager: always}", [says("What?"), ls("a"), says("Right?")]);
  await d.prompt("Go");
  await d.prompt("Look");
  expect(await results()).toEqual([["ls", false]]);
  await d.ask("new_session");
  await d.ask("set_todos", { phases: [{ name: "Work", tasks: [{ content: "Look", status: "pending" }] }] });
  provider.push(ls("b"), says("Right?"));
  await d.prompt("Go");
  expect(await results()).toEqual([["ls", false]]);
  expect(await advice()).toEqual([]);
});
