import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { chunkCount, chunkLines, encodeChunk } from "../../protocol/chunk.ts";
import { FrameDecodeError, FrameDecoder } from "../../protocol/decoder.ts";
import { CHUNK_BYTES, MAX_FRAME_BYTES, MAX_REASSEMBLED_FRAME_BYTES } from "../../protocol/limits.ts";

const RUNS = process.env["MORTISE_SOAK"] ? 500 : 10;

function frameOf(bytes: number): string {
  const shell = JSON.stringify({ type: "x", pad: "" }).length;
  return JSON.stringify({ type: "x", pad: "p".repeat(bytes - shell) });
}

type Chunk = Record<string, unknown>;

function chunksOf(bytes: number): Chunk[] {
  return [...chunkLines(frameOf(bytes), "rpc-1")].map((line) => JSON.parse(line));
}

function decodeAll(chunks: readonly unknown[]): unknown {
  const decoder = new FrameDecoder();
  let frame: unknown;
  for (const chunk of chunks) frame = decoder.decode(JSON.stringify(chunk));
  return frame;
}

describe("rpc_chunk", () => {
  it("cuts at 262144 bytes, with the counts of the reference", () => {
    expect([MAX_FRAME_BYTES, MAX_FRAME_BYTES + 1, MAX_REASSEMBLED_FRAME_BYTES].map(chunkCount)).toEqual([4, 5, 256]);
    const chunks = chunksOf(MAX_FRAME_BYTES + 1);
    expect(chunks.map((chunk) => Buffer.from(String(chunk["data"]), "base64").length)).toEqual([
      ...Array(4).fill(CHUNK_BYTES),
      1,
    ]);
    expect(chunks.map(({ data: _, ...rest }) => rest)).toEqual(
      chunks.map((_, index) => ({ type: "rpc_chunk", chunkId: "rpc-1", index, count: 5, byteLength: MAX_FRAME_BYTES + 1 })),
    );
    expect(String(chunks[0]?.["data"])).toHaveLength(349_528);
  });

  it("any JSON object comes back whole, through any chunk id", () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue({ noUnicodeString: false })),
        fc.integer({ min: 0, max: 9 }),
        (value, extra) => {
          const frame = { type: "x", value, pad: "ü🧭\u2028".repeat(120_000 + extra) };
          const json = JSON.stringify(frame);
          const decoder = new FrameDecoder();
          const frames = [...chunkLines(json, `rpc-${extra}`)].map((line) => decoder.decode(line));
          expect(frames.slice(0, -1).every((one) => one === undefined)).toBe(true);
          expect(JSON.stringify(frames.at(-1))).toBe(json);
          expect(decoder.incomplete).toBe(false);
        },
      ),
      { numRuns: RUNS },
    );
  });

  it("passes plain frames through, before and after a sequence", () => {
    const decoder = new FrameDecoder();
    expect(decoder.decode('{"type":"ready"}')).toEqual({ type: "ready" });
    for (const line of chunkLines(frameOf(MAX_FRAME_BYTES), "a")) decoder.decode(line);
    expect(decoder.decode('{"type":"late"}')).toEqual({ type: "late" });
    decoder.end();
  });

  const base = chunksOf(MAX_FRAME_BYTES + 1);
  const [first = {}, second = {}] = base;
  const cases: readonly [string, readonly unknown[], string][] = [
    ["an empty id", [{ ...first, chunkId: "" }], "invalid rpc chunk metadata"],
    ["a long id", [{ ...first, chunkId: "i".repeat(129) }], "invalid rpc chunk metadata"],
    ["a fractional index", [{ ...first, index: 0.5 }], "invalid rpc chunk metadata"],
    ["a negative index", [{ ...first, index: -1 }], "invalid rpc chunk metadata"],
    ["an index beyond the count", [{ ...first, index: 5 }], "invalid rpc chunk metadata"],
    ["a count of one", [{ ...first, count: 1 }], "invalid rpc chunk metadata"],
    ["too many chunks", [{ ...first, count: 257 }], "invalid rpc chunk metadata"],
    ["a length that needs no chunks", [{ ...first, byteLength: MAX_FRAME_BYTES - 1 }], "invalid rpc chunk metadata"],
    ["a length over the limit", [{ ...first, byteLength: MAX_REASSEMBLED_FRAME_BYTES + 1 }], "invalid rpc chunk metadata"],
    ["a length as text", [{ ...first, byteLength: "1048577" }], "invalid rpc chunk metadata"],
    ["empty data", [{ ...first, data: "" }], "invalid rpc chunk data"],
    ["no data", [{ ...first, data: undefined }], "invalid rpc chunk data"],
    ["unpadded data", [{ ...first, data: "YQ" }], "invalid rpc chunk data"],
    ["stray bits", [{ ...first, data: "YR==" }], "invalid rpc chunk data"],
    ["the URL alphabet", [{ ...first, data: "-_-_" }], "invalid rpc chunk data"],
    ["white space in data", [{ ...first, data: "YWFh\nYWFh" }], "invalid rpc chunk data"],
    [
      "an oversized chunk",
      [{ ...first, data: Buffer.alloc(CHUNK_BYTES + 1).toString("base64") }],
      "rpc chunk payload exceeds the transport limit",
    ],
    ["a start in the middle", [second], "rpc chunk sequence must start at index 0"],
    ["another id", [first, { ...second, chunkId: "rpc-2" }], "rpc chunk sequence mismatch"],
    ["another count", [first, { ...second, count: 6 }], "rpc chunk sequence mismatch"],
    ["another length", [first, { ...second, byteLength: MAX_FRAME_BYTES + 2 }], "rpc chunk sequence mismatch"],
    ["a chunk twice", [first, first], "rpc chunk sequence mismatch"],
    ["a chunk left out", [first, base[2]], "rpc chunk sequence mismatch"],
    ["a frame in between", [first, { type: "event" }], "rpc chunk sequence interrupted"],
    ["too many bytes", [...base.slice(0, 4), { ...base[4], data: "YWE=" }], "rpc chunk sequence exceeds declared length"],
    ["too few bytes", [...base.slice(0, 3), { ...base[3], data: "YWE=" }, base[4]], "rpc chunk sequence length mismatch"],
    ["an array as a frame", [[]], "rpc frame must be an object"],
    ["null as a frame", [null], "rpc frame must be an object"],
  ];
  for (const [what, chunks, error] of cases) {
    it(`refuses ${what}`, () => {
      expect(() => decodeAll(chunks)).toThrow(new FrameDecodeError(error));
    });
  }

  it("refuses content that is not UTF-8, not JSON or not an object", () => {
    const through = (bytes: Buffer) => {
      const decoder = new FrameDecoder();
      for (let index = 0; index < chunkCount(bytes.length); index += 1) decoder.decode(encodeChunk(bytes, "rpc-1", index));
    };
    expect(() => through(Buffer.alloc(MAX_FRAME_BYTES, 0xff))).toThrow(/UTF-8/);
    expect(() => through(Buffer.alloc(MAX_FRAME_BYTES, "x"))).toThrow(/not JSON/);
    expect(() => through(Buffer.from(`[${"1,".repeat(MAX_FRAME_BYTES)}1]`))).toThrow("rpc frame must be an object");
  });

  it("reports a stream that ends inside a sequence, and starts afresh after an error", () => {
    const decoder = new FrameDecoder();
    decoder.decode(JSON.stringify(first));
    expect(() => decoder.end()).toThrow("rpc chunk sequence interrupted");
    expect(() => decoder.decode("{")).toThrow(FrameDecodeError);
    expect(decoder.decode('{"type":"ready"}')).toEqual({ type: "ready" });
  });
});
