import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { readInput } from "../../../core/kernel/transport/input.ts";

function read(stream: PassThrough, maxLineBytes?: number) {
  const seen: string[] = [];
  let finish = () => {};
  const over = new Promise<string[]>((resolve) => {
    finish = () => resolve(seen);
  });
  const stop = readInput(stream, {
    onLine: (text) => seen.push(text),
    onError: (error) => seen.push(`${error.name}: ${error.message}`),
    onEnd: () => {
      seen.push("end");
      finish();
    },
    maxLineBytes,
  });
  return { seen, over, stop };
}

describe("readInput", () => {
  it("public bug 3: lines, one error for a bad line, the last line without newline, then one end", async () => {
    const stream = new PassThrough();
    const { over } = read(stream, 100);
    stream.write('{"a":1}\n\n  \n');
    stream.write(`${"x".repeat(200)}\n`);
    stream.end('{"b":2}');
    expect(await over).toEqual([
      '{"a":1}',
      "ProtocolError: Line exceeds the limit of 100 bytes; it was skipped",
      '{"b":2}',
      "end",
    ]);
  });

  it("public bug 6: a reset connection is an end, reported once", async () => {
    const stream = new PassThrough();
    const { over, seen } = read(stream);
    stream.write('{"a":1}\n');
    await new Promise((resolve) => setImmediate(resolve));
    stream.destroy(new Error("read ECONNRESET"));
    expect(await over).toEqual(['{"a":1}', "end"]);
    await new Promise((resolve) => setImmediate(resolve));
    expect(seen).toHaveLength(2);
  });

  it("ends at once on a stream that is over already", async () => {
    const stream = new PassThrough();
    stream.resume().end();
    await new Promise((resolve) => stream.once("close", resolve));
    expect(await read(stream).over).toEqual(["end"]);
  });

  it("is silent after stop", async () => {
    const stream = new PassThrough();
    const { stop, seen } = read(stream);
    stop();
    stream.write('{"a":1}\n');
    stream.destroy(new Error("late"));
    await new Promise((resolve) => setImmediate(resolve));
    expect(seen).toEqual([]);
  });
});
