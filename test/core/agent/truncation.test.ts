import fc from "fast-check";
import { expect, test } from "vitest";
import { countLines, headBytes, tailBytes, truncateHead, truncateTail } from "../../../core/agent/truncation.ts";

const runs = process.env["MORTISE_SOAK"] ? 20_000 : 500;
const text = fc.array(fc.constantFrom("a", "é", "漢", "🧪", "\n", "bc"), { maxLength: 60 }).map((parts) => parts.join(""));

test("counts lines as an editor does", () => {
  expect(["", "a", "a\n", "a\nb", "\n\n"].map(countLines)).toEqual([0, 1, 1, 2, 2]);
});

test("both ends stay within the limits, on whole characters, and lose nothing that fits", () => {
  fc.assert(
    fc.property(text, fc.integer({ min: 1, max: 12 }), fc.integer({ min: 4, max: 60 }), (input, maxLines, maxBytes) => {
      for (const cut of [truncateHead(input, { maxLines, maxBytes }), truncateTail(input, { maxLines, maxBytes })]) {
        expect(cut.outputBytes).toBeLessThanOrEqual(maxBytes + 1);
        expect(cut.outputLines).toBeLessThanOrEqual(maxLines);
        expect(cut.content.isWellFormed()).toBe(true);
        expect(input.includes(cut.content)).toBe(true);
        if (!cut.truncated) expect(cut.content).toBe(input);
        if (countLines(input) <= maxLines && cut.totalBytes <= maxBytes) expect(cut.truncated).toBe(false);
      }
      expect(input.startsWith(truncateHead(input, { maxLines, maxBytes }).content)).toBe(true);
      expect(input.endsWith(truncateTail(input, { maxLines, maxBytes }).content)).toBe(true);
    }),
    { numRuns: runs },
  );
});

test("cuts bytes on whole characters", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), fc.nat(40), (input, max) => {
      const clean = input.toWellFormed();
      for (const cut of [headBytes(clean, max), tailBytes(clean, max)]) {
        expect(Buffer.byteLength(cut)).toBeLessThanOrEqual(max);
        expect(Buffer.byteLength(cut)).toBeGreaterThan(Math.min(max, Buffer.byteLength(clean)) - 4);
        expect(cut.isWellFormed()).toBe(true);
      }
    }),
    { numRuns: runs },
  );
});
