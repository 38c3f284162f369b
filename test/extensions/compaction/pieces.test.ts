// A history that is longer than what the summariser takes at once: it is summed up piece by piece, and nothing of it is passed over.
import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import type { ProviderRequest } from "../../../core/extension.ts";
import type { TestDaemon } from "../../../core/testing.ts";
import { cutTranscript, lengthOfPieces } from "../../../extensions/compaction/_transcript.ts";
import { fail, Gate, type Reply, says, scriptedModel } from "../../support/scripted-provider.ts";
import { answers, ofType, overflow, type Scene, startScene, textOf, tokensOf } from "./_start.ts";

const soak = process.env["MORTISE_SOAK"] !== undefined;
const ROUNDS = 9;
const SMALL = 4096;

let d: TestDaemon;
afterEach(async () => {
  const errors = ofType(d, "extension_error");
  await d.stop();
  expect(errors).toEqual([]);
});

const given = (request: ProviderRequest | undefined) => textOf(request?.messages[0]);
const types = () => d.daemon.conversations.attached.log.entries.map((entry) => entry.type);
/** Refuses what is above the window of the model, like the services do. */
const honest = (request: ProviderRequest, reply: (tokens: number) => Reply) =>
  overflow(request, request.model.contextWindow ?? 0) ?? reply(tokensOf(request));

/** A conversation of some 9,000 tokens that goes on with a model of 4,096. */
async function long(scene: Partial<Scene> = {}, window = SMALL) {
  const made = await startScene({
    config: "compaction:\n  keepRecentTokens: 400\n",
    answer: (request) => honest(request, (tokens) => answers(`said ${"x".repeat(500)}`, tokens)),
    summary: (request) => honest(request, () => says(`## Goal\nnotes ${"n".repeat(800)}`)),
    ...scene,
  });
  d = made.d;
  d.write("SYSTEM.md", "Be brief.");
  d.daemon.conversations.attached.setActiveTools([]);
  for (let round = 0; round < ROUNDS; round++) await d.prompt(`round ${round}: ${"word ".repeat(700)}`);
  d.daemon.conversations.attached.select({ model: { ...scriptedModel, contextWindow: window, maxTokens: 800 } });
  return made;
}

describe("a history longer than the window", () => {
  it("is given to the model in pieces, each with the notes so far, and no request is too large", async () => {
    const { provider, summaries } = await long();
    await d.prompt("and now");
    const asked = summaries();
    expect(asked.length).toBeGreaterThan(3);
    expect(asked.length).toBeLessThanOrEqual(16);
    expect(provider.requests.every((request) => tokensOf(request) <= (request.model.contextWindow ?? 0))).toBe(true);
    const all = asked.map(given).join("\n");
    for (let round = 0; round < ROUNDS - 1; round++) expect(all).toContain(`round ${round}: word`);
    expect(/.{80}left out.{40}/s.exec(all)?.[0]).toBeUndefined();
    expect(given(asked[0])).not.toContain("<previous-notes>");
    for (const [index, request] of asked.entries()) {
      expect(given(request)).toContain(`This is piece ${index + 1} of ${asked.length};`);
      if (index > 0) expect(given(request)).toContain("<previous-notes>\n## Goal\nnotes");
    }
    expect(ofType(d, "auto_compaction_end")).toMatchObject([{ aborted: false, willRetry: false, result: {} }]);
    expect(types().filter((type) => type === "compaction")).toHaveLength(1);
    // A summary that a larger model made is material itself when it is too long for the notes of a smaller one.
    d.daemon.conversations.attached.log.append({
      type: "compaction",
      summary: `## Goal\n${"fact ".repeat(3000)}the end of it`,
      firstKeptEntryId: d.daemon.conversations.attached.log.leafId ?? "",
      tokensBefore: 1,
    });
    const before = summaries().length;
    await d.prompt("more");
    const again = summaries().slice(before).map(given);
    expect(again.length).toBeGreaterThan(1);
    expect(again[0]).toContain("[Summary of earlier work]: ## Goal\nfact");
    expect(again.join("\n")).toContain("the end of it");
    expect(provider.requests.every((request) => tokensOf(request) <= (request.model.contextWindow ?? 0))).toBe(true);
  });

  it("is cut smaller when the service finds a piece too long, a bounded number of times", async () => {
    let refused = 0;
    const { summaries } = await long(
      {
        // Counts three times as much as it says.
        summary: (request) => {
          if (tokensOf(request) <= 1800) return says("## Goal\nnotes");
          refused++;
          return [fail("prompt is too long", "overflow")];
        },
      },
      8000,
    );
    await d.ask("compact");
    expect(refused).toBeGreaterThan(0);
    expect(refused).toBeLessThanOrEqual(2);
    const all = summaries().map(given).join("\n");
    for (let round = 0; round < ROUNDS - 1; round++) expect(all).toContain(`round ${round}: word`);
    expect(types().filter((type) => type === "compaction")).toHaveLength(1);
  });

  it("stays as it is when a later piece fails, is refused however small, or is aborted", async () => {
    const gate = new Gate();
    const asked = new Gate();
    const replies: ((turn: number) => Reply)[] = [
      () => says("## Goal\nfirst"),
      () => [fail("no more credit", "quota")],
      () => [fail("prompt is too long", "overflow")],
      () => says("## Goal\nfirst"),
      () => [() => asked.open(), gate, ...says("## Goal\nsecond")],
    ];
    const { summaries } = await long({ summary: (_request, turn) => replies.shift()?.(turn) ?? says("unexpected") });
    expect(await d.request("compact")).toMatchObject({ success: false, error: expect.stringContaining("no more credit") });
    expect(await d.request("compact")).toMatchObject({ success: false, error: expect.stringContaining("too long") });
    expect(summaries()).toHaveLength(3);
    const compacting = d.request("compact");
    await asked.passed;
    expect(await d.ask("get_state")).toMatchObject({ isCompacting: true });
    await d.ask("abort");
    expect(await compacting).toMatchObject({ success: false, error: "Compaction cancelled" });
    expect(summaries()).toHaveLength(5);
    expect(types()).not.toContain("compaction");
    expect(await d.ask("get_state")).toMatchObject({ isCompacting: false, messageCount: 2 * ROUNDS });
  });
});

describe("pieces", () => {
  it("hold the whole transcript, are never longer than asked, and no more than was counted on", async () => {
    ({ d } = await startScene({ answer: () => says("ok") }));
    const part = fc.string({ unit: fc.constantFrom("a", "\n\n[", "é", "😀", "x".repeat(300)), maxLength: 40 });
    fc.assert(
      fc.property(part, fc.integer({ min: 60, max: 2000 }), (text, chars) => {
        const pieces = cutTranscript(text, chars);
        expect(pieces.every((piece) => piece.length <= chars && piece.isWellFormed())).toBe(true);
        const body = pieces.map((piece) => piece.replace(/^\[continued\]: /, "")).join("");
        expect(body.replaceAll("\n\n", "")).toBe(text.replaceAll("\n\n", ""));
        if (text.length <= lengthOfPieces(3, chars)) expect(pieces.length).toBeLessThanOrEqual(3);
      }),
      { numRuns: soak ? 20_000 : 300 },
    );
  });
});
