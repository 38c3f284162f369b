// Extensions before and after a compaction: what they may answer, and that none of them can hold a conversation that is aborted.
import { afterEach, expect, it } from "vitest";
import { type CompactionAnswer, defineHook, sessionBeforeCompact, sessionCompacted } from "../../../core/extension.ts";
import type { TestDaemon } from "../../../core/testing.ts";
import { Gate } from "../../support/scripted-provider.ts";
import { answers, ofType, type Scene, startScene } from "./_start.ts";

let d: TestDaemon;
afterEach(() => d.stop());

const never = new Promise<never>(() => {});
const types = () => d.daemon.conversations.attached.log.entries.map((entry) => entry.type);

async function start(hook: unknown, scene: Partial<Scene> = {}) {
  const made = await startScene({
    answer: (_request, turn) => answers(`said ${turn} ${"x".repeat(300)}`, 100),
    more: [hook],
    ...scene,
  });
  d = made.d;
  for (const text of ["one", "two", "three"]) await d.prompt(text);
  return made;
}

const hanging = (asked: Gate) =>
  defineHook(sessionBeforeCompact, () => {
    asked.open();
    return never;
  });

it("an extension that never answers holds a compaction by hand until the abort, no longer", async () => {
  const asked = new Gate();
  const { summaries } = await start(hanging(asked));
  const compacting = d.request("compact");
  await asked.passed;
  await d.ask("abort");
  expect(await compacting).toMatchObject({ success: false, error: "Compaction cancelled", code: "cancelled" });
  expect(await d.ask("get_state")).toMatchObject({ isCompacting: false, messageCount: 6 });
  await d.prompt("four");
  expect(await d.ask("get_state")).toMatchObject({ isStreaming: false, messageCount: 8 });
  expect(summaries()).toEqual([]);
});

it("the same for an automatic one, which is told of as aborted", async () => {
  const asked = new Gate();
  await start(hanging(asked), {
    config: "compaction:\n  keepRecentTokens: 40\n  thresholdTokens: 50000\n",
    answer: (request, turn) => answers(`said ${turn} ${"x".repeat(300)}`, request.messages.length > 6 ? 60_000 : 100),
  });
  d.send({ id: "p", type: "prompt", message: "four" });
  await asked.passed;
  await d.ask("abort");
  expect(await d.ask("get_state")).toMatchObject({ isCompacting: false, isStreaming: false });
  expect(ofType(d, "auto_compaction_end")).toMatchObject([{ aborted: true, willRetry: false }]);
  expect(types()).not.toContain("compaction");
});

it("one that is told of a compaction and never comes back does not hold it once it is aborted", async () => {
  const told = new Gate();
  await start(
    defineHook(sessionCompacted, () => {
      told.open();
      return never;
    }),
  );
  const compacting = d.request("compact");
  await told.passed;
  await d.ask("abort");
  await compacting;
  expect(await d.ask("get_state")).toMatchObject({ isCompacting: false });
  expect(types().filter((type) => type === "compaction")).toHaveLength(1);
});

it.each<[string, unknown, string]>([
  ["a text", "what", "An extension answered what is no compaction: "],
  ["a summary that is a number", { result: { summary: 42 } }, "An extension answered what is no compaction (result.summary): "],
  ["a blank summary", { result: { summary: " \n" } }, "expected a text that says something"],
  ["no summary", { result: {} }, "An extension answered what is no compaction (result.summary): "],
  ["an unknown entry", { result: { summary: "s", firstKeptEntryId: "nope" } }, "wants to keep an entry that is not there: nope"],
])("%s from an extension fails the compaction in words, and nothing is lost", async (_what, answer, error) => {
  const { summaries } = await start(defineHook(sessionBeforeCompact, () => answer as CompactionAnswer));
  expect(await d.request("compact")).toMatchObject({ success: false, error: expect.stringContaining(error) });
  expect(await d.ask("get_state")).toMatchObject({ isCompacting: false, messageCount: 6 });
  expect(types()).not.toContain("compaction");
  expect(summaries()).toEqual([]);
});
