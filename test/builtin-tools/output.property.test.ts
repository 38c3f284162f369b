// Output of any bytes, in any pieces, becomes text that is whole: in results, frames and requests to a model service.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { MAX_BYTES, truncateHead, truncateTail } from "mortise/extension";
import { expect, test } from "vitest";
import { OutputCollector } from "../../extensions/shell/_output.ts";
import { request } from "../cases/_support.ts";
import { hasLoneSurrogate } from "../support/fake-provider.ts";
import { patience, say, useRigs } from "./_built.ts";

const { open } = useRigs();
const SOAK = process.env["MORTISE_SOAK"] !== undefined;

const piece = fc.oneof(
  fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
  fc.string({ unit: "binary", maxLength: 20 }).map((text) => Buffer.from(text)),
  fc
    .constantFrom("\x1b[31m", "\x1b]0;t\x07", "\r", "\b\b", "\r\n", "\n", "🧪", "\x9b3C", "\x1b[2K", "\0")
    .map((text) => Buffer.from(text)),
  fc.nat(3000).map((count) => Buffer.from("🧪".repeat(count))),
);

test("a collector gives whole, bounded text without control characters", () => {
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 40 }), fc.nat(7), (pieces, cut) => {
      const collector = new OutputCollector(undefined, () => {});
      const bytes = Buffer.concat(pieces);
      // Cut at places that have nothing to do with characters.
      for (let at = 0; at < bytes.length; at += 997 + cut) collector.push(bytes.subarray(at, at + 997 + cut));
      const { output, totalBytes, outputBytes } = collector.snapshot();
      expect(output.isWellFormed()).toBe(true);
      expect(output).not.toMatch(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/);
      expect(totalBytes).toBe(bytes.length);
      expect(outputBytes).toBe(Buffer.byteLength(output));
      expect(outputBytes).toBeLessThanOrEqual(MAX_BYTES);
    }),
    { numRuns: SOAK ? 5000 : 200 },
  );
});

test("truncation never splits a character and never exceeds its limits", () => {
  const text = fc.array(
    fc.oneof(fc.string({ unit: "binary", maxLength: 30 }), fc.constantFrom("🧪", "e\u0301", "漢", "\n", "a")),
    { maxLength: 60 },
  );
  fc.assert(
    fc.property(text, fc.integer({ min: 1, max: 120 }), fc.integer({ min: 1, max: 20 }), (parts, maxBytes, maxLines) => {
      const whole = parts.join("");
      for (const cut of [truncateHead(whole, { maxBytes, maxLines }), truncateTail(whole, { maxBytes, maxLines })]) {
        expect(cut.content.isWellFormed()).toBe(true);
        expect(whole).toContain(cut.content);
        expect(Buffer.byteLength(cut.content)).toBeLessThanOrEqual(maxBytes);
        expect(cut.content.split("\n").length).toBeLessThanOrEqual(maxLines + 1);
        expect(cut.truncated || cut.content === whole).toBe(true);
      }
    }),
    { numRuns: SOAK ? 20_000 : 1000 },
  );
});

test.each(["rpc", "rpc-ui"] as const)(
  "random bytes of a command are valid in frames and requests, with %s",
  patience,
  async (mode) => {
    const rig = await open({ mode });
    const samples = fc.sample(fc.array(piece, { maxLength: 30 }), SOAK ? 300 : 12);
    for (const [index, pieces] of samples.entries()) {
      writeFileSync(join(rig.daemon.cwd, "bytes"), Buffer.concat(pieces));
      const result = await rig.call(
        index % 2 === 0 ? "bash" : "read",
        index % 2 === 0 ? { command: "cat bytes" } : { path: "bytes:raw" },
      );
      expect(result.text.isWellFormed()).toBe(true);
      // The host's own command: in its answer, and in what the model is told of it.
      if (index % 3 === 0) expect(await request(rig.daemon, "bash", { command: "cat bytes" })).toMatchObject({ success: true });
    }
    await say(rig, "next");
    const text = new TextDecoder("utf-8", { fatal: true }).decode(rig.bytes());
    for (const line of text.trimEnd().split("\n")) expect(hasLoneSurrogate(JSON.parse(line))).toBe(false);
  },
);
