import { PassThrough, Writable } from "node:stream";
import { describe, expect, it } from "vitest";
import { Outbound } from "../../../core/kernel/transport/outbound.ts";
import { FrameDecoder } from "../../../protocol/decoder.ts";
import { type Frame, MAX_FRAME_BYTES } from "../../../protocol/frame.ts";
import { manualSink } from "./sink.ts";

const text = (bytes: number) => "x".repeat(bytes);

describe("Outbound", () => {
  it("joins the frames of one turn into one write, in order", async () => {
    const sink = manualSink();
    const out = new Outbound(sink.stream);
    for (let n = 0; n < 100; n += 1) out.send({ type: "event", n });
    out.sendSerialized('{"type":"event","n":100}', "event");
    await out.drain();
    expect(sink.writes).toHaveLength(1);
    expect(sink.frames().map((frame) => frame["n"])).toEqual(Array.from({ length: 101 }, (_, n) => n));
    expect(sink.text().endsWith("}\n")).toBe(true);
    expect(out.pendingBytes).toBe(0);
  });

  it("holds a backlog without loss while the reader is slow, and tells when it is over", async () => {
    const sink = manualSink();
    const out = new Outbound(sink.stream, { highWaterMark: 10_000 });
    let drains = 0;
    out.onDrain(() => {
      drains += 1;
    });
    sink.pause();
    for (let n = 0; n < 5; n += 1) {
      out.send({ type: "event", n, pad: text(4_000) });
      await Promise.resolve();
    }
    expect(out.congested).toBe(true);
    expect(out.pendingBytes).toBeGreaterThan(20_000);
    expect(sink.writes).toHaveLength(0);
    sink.resume();
    await out.drain();
    expect(out.congested).toBe(false);
    expect(drains).toBe(1);
    expect(sink.frames().map((frame) => frame["n"])).toEqual([0, 1, 2, 3, 4]);
  });

  it("repairs what JSON cannot hold instead of throwing", async () => {
    const sink = manualSink();
    const out = new Outbound(sink.stream);
    const loop: Record<string, unknown> = { big: 12n };
    loop["self"] = loop;
    out.send({ type: "event", loop, bad: Object.defineProperty({}, "x", { enumerable: true, get: () => JSON.parse("{") }) });
    await out.drain();
    expect(sink.frames()[0]).toMatchObject({ type: "event", loop: { big: "12", self: "[circular reference]" } });
  });

  it("public bug 7 A: a response over the limit of v1 fails, naming size, limit and the way out", async () => {
    const sink = manualSink();
    const out = new Outbound(sink.stream);
    const frame = {
      id: "c1",
      type: "response",
      command: "get_available_models",
      success: true,
      data: { models: text(3_000_000) },
    };
    out.send(frame);
    out.sendSerialized(JSON.stringify({ ...frame, id: 7 }), "response");
    await out.drain();
    for (const [at, id] of ["c1", 7].entries()) {
      expect(sink.frames()[at]).toMatchObject({ id, command: "get_available_models", success: false, code: "too_large" });
      const error = String(sink.frames()[at]?.["error"]);
      expect(error).toContain(String(JSON.stringify({ ...frame, id }).length));
      expect(error).toContain(String(MAX_FRAME_BYTES));
      expect(error).toContain("--max-frame-bytes 0");
    }
  });

  it("sends exactly what fits on a line, and no byte more", async () => {
    const sink = manualSink();
    const out = new Outbound(sink.stream, { maxFrameBytes: 2_000 });
    const shell = JSON.stringify({ type: "event", pad: "" }).length;
    out.send({ type: "event", pad: text(2_000 - 1 - shell) });
    out.send({ type: "event", pad: text(2_000 - shell) });
    await out.drain();
    const lines = sink.lines();
    expect(lines[0]).toHaveLength(1_999);
    expect(lines[1]).toContain("characters left out");
    expect(Buffer.byteLength(lines[1] ?? "")).toBeLessThan(2_000);
  });

  it("lifts the limit with maxFrameBytes 0", async () => {
    const sink = manualSink();
    const out = new Outbound(sink.stream, { maxFrameBytes: 0 });
    out.send({ type: "response", success: true, data: text(2_000_000) });
    await out.drain();
    expect(sink.frames()[0]?.["data"]).toHaveLength(2_000_000);
  });

  it("keeps a shortened event valid: kinds, roles and blocks stay, images become text", async () => {
    const sink = manualSink();
    const out = new Outbound(sink.stream, { maxFrameBytes: 4_096 });
    out.send({
      type: "message_end",
      message: {
        role: "toolResult",
        toolCallId: "t1",
        content: [
          { type: "image", mimeType: "image/png", data: text(9_000) },
          { type: "text", text: "🧭".repeat(5_000) },
        ],
        isError: false,
      },
    });
    await out.drain();
    const [frame] = sink.frames();
    expect(frame).toMatchObject({ type: "message_end", message: { role: "toolResult", toolCallId: "t1", isError: false } });
    expect(JSON.stringify(frame)).not.toContain("\\ud83e");
    expect(frame?.["frameShortened"]).toContain("4096");
    const message = frame?.["message"];
    expect(message).toHaveProperty("content.0.type", "text");
    expect(message).toHaveProperty("content.0.text", expect.stringContaining("image/png, 9000"));
    expect(message).toHaveProperty("content.1.text", expect.stringMatching(/^🧭+\n…\[\d+ characters left out\]$/u));
  });

  it("drops from agent_end the messages that the host has already, before cutting anything", async () => {
    const sink = manualSink();
    const out = new Outbound(sink.stream, { maxFrameBytes: 10_000 });
    const messages = Array.from({ length: 5 }, (_, n) => ({ role: "user", content: text(3_000), timestamp: n }));
    out.send({ type: "agent_start" });
    for (const [n, message] of messages.slice(0, 3).entries()) {
      if (n === 1) out.sendSerialized(JSON.stringify({ type: "message_end", message }), "message_end");
      else out.send({ type: "message_end", message: structuredClone(message) });
    }
    out.send({ type: "agent_end", messages });
    await out.drain();
    expect(sink.frames().at(-1)).toEqual({ type: "agent_end", messages: messages.slice(3), messageCount: 5 });
  });

  it("forgets what was streamed at the next agent_start", async () => {
    const sink = manualSink();
    const out = new Outbound(sink.stream, { maxFrameBytes: 10_000 });
    const message = { role: "user", content: text(6_000) };
    out.send({ type: "message_end", message });
    out.send({ type: "agent_start" });
    out.send({ type: "agent_end", messages: [message, message] });
    await out.drain();
    const last = sink.frames().at(-1);
    expect(last?.["messages"]).toHaveLength(2);
    expect(last?.["frameShortened"]).toBeTypeOf("string");
  });

  it("refuses requests to the host that would be acted on half", () => {
    const out = new Outbound(manualSink().stream, { maxFrameBytes: 1_024 });
    const call: Frame = { type: "host_uri_request", id: "u1", operation: "write", url: "db://x", content: text(2_000) };
    expect(() => out.send(call)).toThrow(/Frame host_uri_request of \d+ bytes exceeds the limit of 1024 bytes/);
    expect(() => out.send({ type: "extension_ui_request", method: "editor", prefill: text(2_000) })).toThrow(/exceeds/);
    expect(out.pendingBytes).toBe(0);
  });

  it("public bug 7 B: after v2 large frames leave as one uninterrupted run of chunks; the negotiation answer is still v1", async () => {
    const sink = manualSink();
    const out = new Outbound(sink.stream);
    out.negotiateV2();
    out.send({ type: "notice", message: text(1_500_000) });
    out.send({ id: "n", type: "response", command: "negotiate_protocol", success: true, data: { protocolVersion: 2 } });
    const big = { id: "c2", type: "response", command: "get_available_models", success: true, data: "ü\u2028".repeat(700_000) };
    out.send(big);
    out.send({ type: "event", n: 1 });
    await out.drain();
    const [shortened, negotiated, ...rest] = sink.frames();
    expect(shortened?.["frameShortened"]).toBeTypeOf("string");
    expect(negotiated?.["id"]).toBe("n");
    expect(rest.slice(0, -1).every((frame) => frame["type"] === "rpc_chunk")).toBe(true);
    const decoder = new FrameDecoder();
    const decoded = sink
      .lines()
      .slice(2)
      .map((line) => decoder.decode(line));
    expect(decoded.filter((frame) => frame !== undefined)).toEqual([big, { type: "event", n: 1 }]);
    expect(Math.max(...sink.lines().map((line) => Buffer.byteLength(line) + 1))).toBeLessThanOrEqual(MAX_FRAME_BYTES);
  });

  it("public bug 5: end() waits for a slow reader as long as it takes bytes, and reports a full delivery", async () => {
    const pipe = new PassThrough({ highWaterMark: 1 });
    const out = new Outbound(pipe);
    for (let n = 0; n < 50; n += 1) out.send({ type: "event", n, pad: text(20_000) });
    let received = "";
    const timer = setInterval(() => {
      const chunk: unknown = pipe.read();
      if (chunk !== null) received += String(chunk);
    }, 5);
    await expect(out.end(500)).resolves.toBe(true);
    clearInterval(timer);
    for (let chunk: unknown = pipe.read(); chunk !== null; chunk = pipe.read()) received += String(chunk);
    expect(received.split("\n")).toHaveLength(51);
    out.send({ type: "late" });
    expect(out.pendingBytes).toBe(0);
  });

  it("public bug 5: end() gives up when nobody reads", async () => {
    const sink = manualSink();
    sink.pause();
    const out = new Outbound(sink.stream);
    out.send({ type: "event" });
    await expect(out.end(40)).resolves.toBe(false);
  });

  it("public bug 6: a lost reader is reported once and nothing is written afterwards", async () => {
    let writes = 0;
    const broken = new Writable({
      emitClose: false,
      autoDestroy: false,
      write(_chunk, _encoding, done) {
        writes += 1;
        done(Object.assign(new Error("write EPIPE"), { code: "EPIPE" }));
      },
    });
    const errors: string[] = [];
    const out = new Outbound(broken, { onClosed: (error) => errors.push(error.message) });
    out.send({ type: "event" });
    await out.drain();
    for (let n = 0; n < 100; n += 1) {
      out.send({ type: "event", n });
      await Promise.resolve();
    }
    await expect(out.end(50)).resolves.toBe(false);
    expect(errors).toEqual(["write EPIPE"]);
    expect(writes).toBe(1);
  });
});
