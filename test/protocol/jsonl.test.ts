import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LineSplitter } from "../../protocol/jsonl.ts";

const RUNS = process.env["MORTISE_SOAK"] ? 10_000 : 200;

interface Outcome {
  readonly lines: string[];
  readonly problems: string[];
}

function read(chunks: readonly Uint8Array[], maxLineBytes?: number): Outcome {
  const outcome: Outcome = { lines: [], problems: [] };
  const splitter = new LineSplitter({
    onLine: (line) => outcome.lines.push(line),
    onProblem: (problem) => outcome.problems.push(problem.kind),
    maxLineBytes,
  });
  for (const chunk of chunks) splitter.push(chunk);
  splitter.end();
  return outcome;
}

function cutAt(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b);
  return [0, ...places].map((from, at) => bytes.subarray(from, places[at] ?? bytes.length));
}

describe("LineSplitter", () => {
  it("public bug 1: splits on byte 0A only; Unicode separators stay inside the line", () => {
    const line = '{"message":"a\u2028b\u2029c\u0085d\\u000be\u000b\u000c"}';
    expect(read([Buffer.from(`${line}\n${line}\n`)])).toEqual({ lines: [line, line], problems: [] });
  });

  it("public bug 2: keeps characters whose bytes arrive one at a time", () => {
    const line = '{"id":"m1","name":"ß—漢🧭e\u0301"}';
    const bytes = Buffer.from(`${line}\n`);
    expect(read([...bytes].map((byte) => Uint8Array.of(byte)))).toEqual({ lines: [line], problems: [] });
  });

  it("public bug 3: BOM, CRLF, blank lines and a last line without newline", () => {
    const text = '\ufeff{"a":1}\n\n   \n\r\n{"b":2}\r\n[]\nnull\n \t{"c":3}\n\ufeff\n{"d":4}';
    expect(read([Buffer.from(text)]).lines).toEqual(['{"a":1}', '{"b":2}', "[]", "null", ' \t{"c":3}', '{"d":4}']);
  });

  it("reports invalid UTF-8 once per line and goes on; a real U+FFFD is no problem", () => {
    const bytes = Buffer.concat([
      Buffer.from('{"a":"'),
      Buffer.from([0xc3, 0x28]),
      Buffer.from('"}\n{"b":"\ufffd"}\n{"c":"'),
      Buffer.from([0xed, 0xa0, 0x80]),
      Buffer.from('"}\n{"d":1}\n{"e":"'),
      Buffer.from([0xf0, 0x9f]),
    ]);
    for (const chunks of [[bytes], [...bytes].map((byte) => Uint8Array.of(byte))]) {
      expect(read(chunks)).toEqual({
        lines: ['{"b":"\ufffd"}', '{"d":1}'],
        problems: ["invalid_utf8", "invalid_utf8", "invalid_utf8"],
      });
    }
  });

  it("reports an over-long line once, does not hold it, and goes on", () => {
    const problems: number[] = [];
    const lines: string[] = [];
    const splitter = new LineSplitter({
      onLine: (line) => lines.push(line),
      onProblem: (problem) => problems.push(problem.bytes),
      maxLineBytes: 1_000,
    });
    let most = 0;
    for (let n = 0; n < 100; n += 1) {
      splitter.push(Buffer.alloc(300, 0x78));
      most = Math.max(most, splitter.pendingBytes);
    }
    splitter.push(Buffer.from(`x\n{"a":1}\n${"y".repeat(1_001)}\n${"z".repeat(1_000)}\n`));
    splitter.end();
    expect(problems).toEqual([1_200, 1_001]);
    expect(lines).toEqual(['{"a":1}', "z".repeat(1_000)]);
    expect(most).toBeLessThanOrEqual(1_000);
  });

  it("takes a 32 MB line in 4 KB pieces in linear time", () => {
    const piece = Buffer.alloc(4_096, 0x61);
    let length = 0;
    const splitter = new LineSplitter({ onLine: (line) => (length = line.length), onProblem: () => {} });
    const started = performance.now();
    for (let n = 0; n < 8_192; n += 1) splitter.push(piece);
    splitter.push(Buffer.from("\n"));
    expect(length).toBe(8_192 * 4_096);
    expect(performance.now() - started).toBeLessThan(3_000);
  });

  it("any split of the byte stream gives the same lines", () => {
    const line = fc.oneof(
      fc.json({ noUnicodeString: false }),
      fc.string({ unit: "binary" }).map((text) => text.replaceAll("\n", "")),
    );
    fc.assert(
      fc.property(fc.array(line), fc.array(fc.nat()), fc.constantFrom("\n", "\r\n"), (lines, cuts, newline) => {
        const bytes = Buffer.from(lines.map((text) => text + newline).join(""));
        expect(read(cutAt(bytes, cuts))).toEqual(read([bytes]));
      }),
      { numRuns: RUNS },
    );
  });

  it("any JSON values survive, whatever the split", () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue({ noUnicodeString: false })), fc.array(fc.nat()), (values, cuts) => {
        const bytes = Buffer.from(values.map((value) => JSON.stringify(value)).join("\n"));
        const { lines, problems } = read(cutAt(bytes, cuts));
        expect(problems).toEqual([]);
        expect(lines.map((text) => JSON.parse(text))).toEqual(JSON.parse(JSON.stringify(values)));
      }),
      { numRuns: RUNS },
    );
  });

  it("any bytes at all give lines or problems, never an exception", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), fc.array(fc.nat()), fc.integer({ min: 1, max: 64 }), (bytes, cuts, max) => {
        const whole = read([bytes], max);
        const split = read(cutAt(Buffer.from(bytes), cuts), max);
        expect(split).toEqual(whole);
      }),
      { numRuns: RUNS },
    );
  });
});
