// Ways out where a compaction used to give up: models that name no window, services that say nothing, prompts that fit nowhere.
import { expect, it } from "vitest";
import type { ProviderRequest } from "../../../core/extension.ts";
import type { TestDaemon } from "../../../core/testing.ts";
import { calls, done, fail, Gate, type Reply, says } from "../../support/scripted-provider.ts";
import { answers, ofType, overflow, startingScenes, textOf, tokensOf } from "./_start.ts";

let d: TestDaemon;
const start = startingScenes((made) => {
  d = made;
});
const ends = () => ofType(d, "auto_compaction_end");
const notices = () => ofType(d, "notice").filter((frame) => frame["source"] === "compaction");
const lastUser = (request: ProviderRequest) => textOf(request.messages.findLast((message) => message.role === "user"));
const said = () => d.daemon.conversations.attached.messages.map((message) => message.role);

it("recovers from an overflow of a model that names no window", async () => {
  let refused = false;
  await start({
    model: { contextWindow: undefined },
    answer: (request) => {
      if (lastUser(request) !== "three" || refused) return answers(`said ${"x".repeat(300)}`, tokensOf(request));
      refused = true;
      return [fail("prompt is too long", "overflow")];
    },
  });
  for (const text of ["one", "two", "three"]) await d.prompt(text);
  expect(ends()).toMatchObject([{ willRetry: true, result: {} }]);
  expect(notices()).toEqual([]);
  expect(said()).toEqual(["compactionSummary", "user", "assistant"]);
});

it("compacts at a threshold in tokens also for a model that names no window", async () => {
  await start({
    model: { contextWindow: undefined },
    config: "compaction:\n  keepRecentTokens: 40\n  thresholdTokens: 50000\n",
    answer: (request) => answers(`said ${"x".repeat(300)}`, request.messages.length > 4 ? 60_000 : 100),
  });
  for (const text of ["one", "two", "three", "four"]) await d.prompt(text);
  expect(ofType(d, "auto_compaction_start")).toMatchObject([{ reason: "threshold" }]);
  expect(ends()).toMatchObject([{ result: {}, aborted: false }]);
});

const nothing = (input: number, stop: "stop" | "length"): Reply => [
  { type: "start" },
  { type: "usage", usage: { input, output: 0 } },
  done(stop),
];

it.each([
  ["filled the window", 30_000, "stop" as const],
  ["went beyond it", 36_000, "stop" as const],
  ["left no room for an answer", 29_900, "length" as const],
])("takes an empty answer to a context that %s for an overflow", async (_what, input, stop) => {
  let asked = 0;
  const { summaries } = await start({
    model: { contextWindow: 30_000, maxTokens: 500 },
    answer: (request) =>
      lastUser(request) === "three" && asked++ === 0 ? nothing(input, stop) : answers(`said ${"x".repeat(300)}`, 100),
  });
  for (const text of ["one", "two", "three"]) await d.prompt(text);
  expect(asked).toBe(2);
  expect(summaries()).toHaveLength(1);
  expect(ofType(d, "auto_compaction_start")).toMatchObject([{ reason: "overflow" }]);
  expect(ends()).toMatchObject([{ willRetry: true }]);
  expect(said()).toEqual(["compactionSummary", "user", "assistant"]);
});

it("sums up a prompt that no window takes as soon as another one comes, or by hand", async () => {
  const { provider } = await start({
    config: "compaction:\n  keepRecentTokens: 100\n",
    model: { contextWindow: 12_000, maxTokens: 500 },
    answer: (request) => overflow(request, 12_000) ?? answers("ok", tokensOf(request)),
    summary: (request) => overflow(request, 12_000) ?? says("## Goal\nSummed up."),
  });
  d.daemon.conversations.attached.setActiveTools([]);
  const huge = `huge ${"word ".repeat(12_000)}`;
  await d.prompt("one");
  await d.prompt(huge);
  expect(notices().at(-1)).toMatchObject({ level: "error", message: expect.stringContaining("the newest message about") });
  expect(said()).toEqual(["user", "assistant", "user"]);
  await d.prompt("small");
  expect(said()).toEqual(["compactionSummary", "user", "assistant"]);
  await d.prompt(huge);
  expect(said().at(-1)).toBe("user");
  expect(await d.ask("compact")).toMatchObject({
    summary: expect.stringContaining("The user's latest request, word for word\nhuge"),
  });
  expect(said()).toEqual(["compactionSummary"]);
  await d.prompt("small");
  expect(said()).toEqual(["compactionSummary", "user", "assistant"]);
  expect(provider.requests.length).toBeLessThan(25);
});

it("says what takes the room when nothing was said yet that could be summed up", async () => {
  const { provider } = await start({ model: { contextWindow: 500, maxTokens: 100 }, answer: () => says("ok") });
  await d.prompt("one");
  expect(notices()[0]).toMatchObject({
    level: "warning",
    message: expect.stringMatching(
      /^Auto-compaction failed: .* system prompt and tools take about [\d,]+ tokens, all messages about 0,/,
    ),
  });
  expect(provider.requests).toHaveLength(1);
});

it("keeps what comes in while everything else is being replaced", async () => {
  const gate = new Gate();
  const asked = new Gate();
  await start({
    config: "compaction:\n  keepRecentTokens: 100\n",
    model: { contextWindow: 20_000, maxTokens: 500 },
    answer: (request) =>
      request.messages.at(-1)?.role === "user" ? calls({ id: "c", name: "big", args: { chars: 100_000 } }) : says("ok"),
    summary: () => [() => asked.open(), gate, ...says("## Goal\nSummed up.")],
  });
  await d.ask("set_auto_compaction", { enabled: false });
  await d.prompt("go");
  d.daemon.conversations.attached.log.branchTo(d.daemon.conversations.attached.log.path().at(-2)?.id ?? null);
  const compacting = d.ask("compact");
  await asked.passed;
  await d.ask("bash", { command: "echo meanwhile" });
  gate.open();
  await compacting;
  expect(said()).toEqual(["compactionSummary", "bashExecution"]);
});
