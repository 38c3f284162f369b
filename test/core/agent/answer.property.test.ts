import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Answer } from "../../../core/agent/answer.ts";
import { scriptedModel } from "../../support/scripted-provider.ts";

const SOAK = process.env["MORTISE_SOAK"] !== undefined;
const KINDS = ["text", "thinking", "toolcall"] as const;
/** Texts with whole characters and halves of them, cut anywhere. */
const pieces = fc.array(fc.constantFrom("a", "é", "😀", "\ud83d", "\ude00", "👩‍👩‍👧"), { maxLength: 10 }).chain((units) => {
  const text = units.join("");
  return fc.array(fc.nat({ max: text.length }), { maxLength: 6 }).map((cuts) => {
    const at = [0, ...cuts.toSorted((a, b) => a - b), text.length];
    return at.slice(1).map((end, index) => text.slice(at[index], end));
  });
});

describe("An answer", () => {
  it("is told in whole characters wherever the service cuts them, and holds what was told", () => {
    fc.assert(
      fc.property(fc.constantFrom(...KINDS), pieces, (kind, deltas) => {
        const answer = new Answer(scriptedModel, 0);
        const text = deltas.join("").toWellFormed();
        const told = (
          kind === "toolcall"
            ? [
                { type: "toolcall_start" as const, index: 0, id: "c", name: "tool" },
                ...['{"a":"', ...deltas, '"}'].map((delta) => ({ type: "toolcall_delta" as const, index: 0, delta })),
                { type: "toolcall_end" as const, index: 0 },
              ]
            : [
                ...deltas.map((delta) => ({ type: `${kind}_delta` as const, index: 0, delta })),
                { type: `${kind}_end` as const, index: 0 },
              ]
        ).flatMap((event) => answer.apply(event).flatMap((step) => (step.kind === "delta" ? [step.delta] : [])));
        for (const delta of told) expect(delta.isWellFormed()).toBe(true);
        expect(told.join("")).toBe(kind === "toolcall" ? `{"a":"${text}"}` : text);
        const [block] = answer.finish("stop", { now: 0 }).content;
        if (text === "" && kind !== "toolcall") expect(block).toBeUndefined();
        else if (kind === "text") expect(block).toMatchObject({ type: "text", text });
        else if (kind === "thinking") expect(block).toMatchObject({ type: "thinking", thinking: text });
        else expect(block).toMatchObject({ type: "toolCall", arguments: { a: text } });
      }),
      { numRuns: SOAK ? 20_000 : 500 },
    );
  });
});
