import { setImmediate as turn } from "node:timers/promises";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Outbound } from "../../../core/kernel/transport/outbound.ts";
import { FrameDecoder } from "../../../protocol/decoder.ts";
import type { Frame } from "../../../protocol/frame.ts";
import { manualSink } from "./sink.ts";

const SOAK = process.env["MORTISE_SOAK"] !== undefined;

type Step = { readonly send: Frame } | { readonly reader: "pause" | "resume" } | { readonly turn: true };

const payload = fc.record({ type: fc.constant("event"), data: fc.jsonValue({ noUnicodeString: false }) });
const large = fc.integer({ min: 300_000, max: 900_000 }).map((length) => ({ type: "event", data: "ü\u2028".repeat(length) }));
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: payload.map((send) => ({ send })) },
  { weight: 1, arbitrary: large.map((send) => ({ send })) },
  { weight: 2, arbitrary: fc.constantFrom<Step>({ reader: "pause" }, { reader: "resume" }) },
  { weight: 2, arbitrary: fc.constant<Step>({ turn: true }) },
);

describe("Outbound, any sequence", () => {
  it("on v2 every frame arrives whole and in order, whatever the reader does", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const sink = manualSink();
        const out = new Outbound(sink.stream, { highWaterMark: 50_000 });
        out.negotiateV2();
        out.send({ type: "response", command: "negotiate_protocol", success: true });
        const sent: unknown[] = [];
        for (const one of steps) {
          if ("send" in one) {
            if (sent.length % 2 === 0) out.send(one.send);
            else out.sendSerialized(JSON.stringify(one.send), one.send.type);
            sent.push(JSON.parse(JSON.stringify(one.send)));
          } else if ("reader" in one) sink[one.reader]();
          else await turn();
          expect(out.congested).toBeTypeOf("boolean");
        }
        sink.resume();
        await out.drain();
        const decoder = new FrameDecoder();
        const got = sink.lines().flatMap((line) => decoder.decode(line) ?? []);
        decoder.end();
        expect(got.slice(1)).toEqual(sent);
        expect(out.pendingBytes).toBe(0);
      }),
      { numRuns: SOAK ? 500 : 25 },
    );
  });

  it("no line holds half of a character, and what was whole is unchanged", async () => {
    const unit = fc.constantFrom("a", "\\", '"', "\\ud83d", "\ud83d", "\ude00", "😀", "u", "\n");
    const text = fc.array(unit, { maxLength: 12 }).map((units) => units.join(""));
    await fc.assert(
      fc.asyncProperty(fc.dictionary(text, text, { maxKeys: 3 }), fc.boolean(), async (data, serialized) => {
        const sink = manualSink();
        const out = new Outbound(sink.stream);
        const frame = { type: "event", data: Object.entries(data) };
        if (serialized) out.sendSerialized(JSON.stringify(frame), frame.type);
        else out.send(frame);
        await out.drain();
        const expected = frame.data.map((pair) => pair.map((each) => each.toWellFormed()));
        expect(sink.lines().map((line) => JSON.parse(line) as unknown)).toEqual([{ type: "event", data: expected }]);
      }),
      { numRuns: SOAK ? 5000 : 200 },
    );
  });

  it("on v1 every line is one JSON object within the limit, of the type that was sent", async () => {
    const text = fc.oneof(
      fc.string({ unit: "binary", maxLength: 40 }),
      fc.nat({ max: 2_000 }).map((length) => "🧭é\u0001".repeat(length)),
    );
    const tree = fc.letrec((tie) => ({
      any: fc.oneof(
        { maxDepth: 4 },
        text,
        fc.double(),
        fc.array(tie("any"), { maxLength: 12 }),
        fc.dictionary(text, tie("any"), { maxKeys: 12 }),
      ),
    })).any;
    const type = fc.constantFrom("response", "agent_end", "message_end", "notice", "subagent_event");
    const frame = fc.record({ type, id: text, command: text, success: fc.boolean(), message: tree, messages: fc.array(tree) });
    await fc.assert(
      fc.asyncProperty(fc.array(frame, { maxLength: 6 }), fc.integer({ min: 1_024, max: 60_000 }), async (frames, limit) => {
        const sink = manualSink();
        const out = new Outbound(sink.stream, { maxFrameBytes: limit });
        for (const one of frames) out.send(one);
        await out.drain();
        const lines = sink.lines();
        expect(lines).toHaveLength(frames.length);
        for (const [at, line] of lines.entries()) {
          expect(Buffer.byteLength(line) + 1).toBeLessThanOrEqual(limit);
          const got = JSON.parse(line);
          if (got.type === "rpc_frame_error") expect(got.originalType).toBe(frames[at]?.type);
          else expect(got.type).toBe(frames[at]?.type);
          // Never a success with less than all of its data.
          if (got.type === "response" && got.success) expect(line).toBe(JSON.stringify(frames[at]));
        }
      }),
      { numRuns: SOAK ? 500 : 40 },
    );
  });
});
