import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { LineEnds } from "../../../extensions/shell/_line-ends.ts";
import { OutputCollector } from "../../../extensions/shell/_output.ts";
import { TerminalReducer } from "../../../extensions/shell/_reduce.ts";

const runs = process.env["MORTISE_SOAK"] ? 20_000 : 500;

function reduce(...chunks: string[]): string {
  const reducer = new TerminalReducer();
  return chunks.map((chunk) => reducer.push(chunk)).join("") + reducer.pending;
}

describe("TerminalReducer", () => {
  test.each([
    ["plain\ntext", "plain\ntext"],
    ["a\r\nb\r\n", "a\nb\n"],
    ["10%\r20%\r100%\n", "100%\n"],
    ["long line\rshort\n", "shortline\n"],
    ["long line\r\x1b[Kshort\n", "short\n"],
    ["long line\x1b[2K\rshort\n", "short\n"],
    ["over\bwrite", "ovewrite"],
    ["\x1b[31mred\x1b[0m\x1b]0;title\x07\x1b]8;;http://x\x07l\x1b]8;;\x07\rover\bwrite\n", "ovewrite\n"],
    ["\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"],
    ["a\x1b[3Cb", "a   b"],
    ["x\0y\x7f\x05\n", "xy\n"],
    ["N\bNA\bAME", "NAME"],
    ["\x1b(B\x1b=\x1b7ok\x1b8", "ok"],
    ["\x9b31mC1\x9c", "C1"],
  ])("%j becomes %j", (input, expected) => {
    expect(reduce(input)).toBe(expected);
  });

  test("does not depend on how the text is cut into chunks", () => {
    const piece = fc.constantFrom(
      "a",
      "bc",
      "\r",
      "\n",
      "\b",
      "\x1b[31m",
      "\x1b[K",
      "\x1b]0;t\x07",
      "\x1b]8;;u\x1b\\",
      "é",
      "🧪",
      "\x1b",
      "\t",
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), fc.array(fc.nat(200), { maxLength: 6 }), (pieces, cuts) => {
        // The decoder before it never cuts inside a character.
        const whole = Array.from(pieces.join(""));
        const at = [...new Set(cuts.map((cut) => cut % (whole.length + 1)))].sort((a, b) => a - b);
        const chunks = [0, ...at].map((from, index) => whole.slice(from, at[index] ?? whole.length).join(""));
        expect(reduce(...chunks)).toBe(reduce(whole.join("")));
      }),
      { numRuns: runs },
    );
  });

  test("never lets a control character through", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        expect(reduce(text)).not.toMatch(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/);
      }),
      { numRuns: runs },
    );
  });

  test("stays fast when every second character is a carriage return", () => {
    const started = performance.now();
    reduce("x".repeat(16_000), "\rx".repeat(500_000));
    expect(performance.now() - started).toBeLessThan(2000);
  });
});

test("LineEnds undoes what a terminal does to line ends, however it is cut", () => {
  const text = fc.array(fc.constantFrom("\r", "\n", "\r\n", "a", "\0"), { maxLength: 30 }).map((parts) => parts.join(""));
  fc.assert(
    fc.property(text, fc.array(fc.nat(60), { maxLength: 8 }), (written, places) => {
      const shown = Buffer.from(written.replaceAll("\n", "\r\n"));
      const cuts = [0, ...places.sort((a, b) => a - b), shown.length];
      const ends = new LineEnds();
      const pieces = cuts.slice(1).map((cut, index) => Buffer.from(ends.push(shown.subarray(cuts[index], cut))));
      expect(Buffer.concat([...pieces, ends.end()]).toString()).toBe(written);
    }),
    { numRuns: runs },
  );
});

describe("OutputCollector", () => {
  const collect = (...chunks: Buffer[]) => {
    const collector = new OutputCollector(undefined, () => {});
    for (const chunk of chunks) collector.push(chunk);
    return collector.snapshot();
  };

  test("case 17.1: the cut never falls inside a character", () => {
    for (let n = 10_240 - 3; n <= 10_240 + 3; n++) {
      for (const more of [0, 1, 2, 3]) {
        const result = collect(Buffer.from(`${"a".repeat(n)}${"🧪".repeat(20_000)}${"b".repeat(more)}`));
        expect(result.truncated).toBe(true);
        expect(result.output).not.toContain("\ufffd");
        expect(result.output.isWellFormed()).toBe(true);
        expect(result.outputBytes).toBeLessThanOrEqual(50 * 1024);
        expect(result.output).toMatch(/\[… [^\]]* left out …\]/);
      }
    }
  });

  test("keeps beginning and end of many lines within 2000", () => {
    const result = collect(Buffer.from(Array.from({ length: 9000 }, (_, index) => `${index + 1}\n`).join("")));
    expect(result).toMatchObject({ truncated: true, totalLines: 9000, outputLines: 2000 });
    expect(result.output).toMatch(/^1\n2\n[\s\S]*\n400\n\[… 7001 lines, [\d.]+ KB left out …\]\n7402\n[\s\S]*\n9000\n$/);
  });

  test("shows everything that fits, byte for byte", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: "grapheme", maxLength: 40 }), { maxLength: 50 }), fc.nat(30), (lines, size) => {
        const text = lines.map((line) => line.replace(/[\x00-\x1f\x7f-\x9f]/g, "")).join("\n");
        const bytes = Buffer.from(text);
        const chunks: Buffer[] = [];
        for (let at = 0; at < bytes.length; at += size + 1) chunks.push(bytes.subarray(at, at + size + 1));
        const result = collect(...chunks);
        expect(result.output).toBe(text.toWellFormed());
        expect(result).toMatchObject({ truncated: false, totalBytes: bytes.length, outputLines: result.totalLines });
      }),
      { numRuns: runs },
    );
  });
});
