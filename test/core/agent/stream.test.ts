import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { DeltaStep } from "../../../core/agent/answer.ts";
import { UpdateMerger } from "../../../core/agent/updates.ts";
import type { ProviderEvent } from "../../../core/extension.ts";
import type { Frame } from "../../../protocol/frame.ts";
import { AssistantMessageEvent } from "../../../protocol/message.ts";
import { done, Gate, says, scriptedModel, scriptedProvider, usage } from "../../support/scripted-provider.ts";
import { harness, textOf } from "./_harness.ts";

type Update = {
  message: { content: { text?: string }[] };
  assistantMessageEvent: { type: string; contentIndex: number; delta?: string; content?: string };
};
const updates = (frames: readonly Frame[]) => frames.filter((frame) => frame.type === "message_update") as unknown as Update[];
const deltas = (list: readonly Update[], type = "text_delta") =>
  list.filter((update) => update.assistantMessageEvent.type === type);
const joined = (list: readonly Update[]) => list.map((update) => update.assistantMessageEvent.delta).join("");

async function* flood(count: number, text: (n: number) => string): AsyncGenerator<ProviderEvent> {
  yield { type: "text_start", index: 0 };
  for (let n = 0; n < count; n++) yield { type: "text_delta", index: 0, delta: text(n) };
  yield { type: "text_end", index: 0 };
  yield done();
}

describe("message_update", () => {
  it("has the shape strict hosts want, and no start, done or error events", async () => {
    const provider = scriptedProvider(
      [
        { type: "start", responseId: "r1" },
        { type: "thinking_start", index: 0 },
        { type: "thinking_delta", index: 0, delta: "hm" },
        { type: "thinking_end", index: 0, signature: "sig" },
        { type: "text_start", index: 1 },
        { type: "text_delta", index: 1, delta: "Hi" },
        { type: "text_end", index: 1 },
        { type: "toolcall_start", index: 2, id: "c", name: "none" },
        { type: "toolcall_delta", index: 2, delta: '{"a":' },
        { type: "toolcall_delta", index: 2, delta: "1}" },
        { type: "toolcall_end", index: 2 },
        usage(100, 50),
        done("toolUse"),
      ],
      says("End"),
    );
    const h = harness({ provider });
    await h.conversation.submit("Go").settled;
    const first = updates(h.frames).slice(0, 9);
    expect(first.map((update) => update.assistantMessageEvent.type)).toEqual([
      ...["thinking_start", "thinking_delta", "thinking_end", "text_start", "text_delta", "text_end"],
      ...["toolcall_start", "toolcall_delta", "toolcall_end"],
    ]);
    for (const update of updates(h.frames)) {
      expect(AssistantMessageEvent.safeParse(update.assistantMessageEvent).error).toBeUndefined();
      expect(update.assistantMessageEvent).toMatchObject({ partial: { role: "assistant", content: [] } });
    }
    expect(first[4]?.message.content).toEqual([
      { type: "thinking", thinking: "hm", thinkingSignature: "sig" },
      { type: "text", text: "Hi" },
    ]);
    expect(first[7]?.assistantMessageEvent.delta).toBe('{"a":1}');
    expect(h.ends("assistant")[0]).toMatchObject({
      responseId: "r1",
      stopReason: "toolUse",
      usage: { input: 100, output: 50, totalTokens: 150, cost: { input: 0.0001, output: 0.0001, total: 0.0002 } },
    });
  });

  it("sends the first delta at once and loses none of 5,000, in bytes that stay near the text", async () => {
    const h = harness({ provider: scriptedProvider(() => flood(5000, (n) => `word${n} `)) });
    await h.conversation.submit("Go").settled;
    const list = updates(h.frames);
    const text = Array.from({ length: 5000 }, (_, n) => `word${n} `).join("");
    expect(deltas(list)[0]?.assistantMessageEvent.delta).toBe("word0 ");
    expect(joined(deltas(list))).toBe(text);
    expect(list.at(-1)?.assistantMessageEvent).toMatchObject({ type: "text_end", content: text });
    expect(textOf(h.ends("assistant")[0])).toBe(text);
    for (const update of deltas(list)) expect(text.startsWith(update.message.content[0]?.text ?? "?")).toBe(true);
    const bytes = h.frames.reduce((sum, frame) => sum + JSON.stringify(frame).length, 0);
    expect(bytes).toBeLessThan(100 * text.length);
  });

  it("leaves content empty in delta mode", async () => {
    const h = harness({ provider: scriptedProvider(says("Hel", "lo")) });
    h.conversation.messageUpdates = "delta";
    await h.conversation.submit("Go").settled;
    expect(updates(h.frames).every((update) => update.message.content.length === 0)).toBe(true);
    expect(joined(deltas(updates(h.frames)))).toBe("Hello");
    expect(textOf(h.ends("assistant")[0])).toBe("Hello");
  });

  it("merges while the host reads slowly and never delays message_end", async () => {
    const rest = new Gate();
    const sent = new Gate();
    const provider = scriptedProvider([
      { type: "text_start", index: 0 },
      { type: "text_delta", index: 0, delta: "a" },
      () => h.congest(),
      { type: "text_delta", index: 0, delta: "b" },
      { type: "text_delta", index: 0, delta: "c" },
      () => sent.open(),
      rest,
      { type: "text_delta", index: 0, delta: "d" },
      done(),
    ]);
    const h = harness({ provider });
    const work = h.conversation.submit("Go");
    await sent.passed;
    await new Promise((resolve) => setTimeout(resolve, 40));
    expect(joined(deltas(updates(h.frames)))).toBe("a");
    h.drain();
    await h.frame((frame) => JSON.stringify(frame).includes('"delta":"bc"'));
    h.congest();
    rest.open();
    await work.settled;
    expect(joined(deltas(updates(h.frames)))).toBe("abcd");
    expect(textOf(h.ends("assistant")[0])).toBe("abcd");
  });

  it("lets timers run during a flood", async () => {
    let ticks = 0;
    const timer = setInterval(() => ticks++, 1);
    // No passage comes twice: an answer that repeats itself is cut off when a busy machine takes long over it.
    const letter = (n: number) => "0123456789abcdef"[((n * 2_654_435_761) >>> 13) & 15] ?? "";
    const h = harness({ provider: scriptedProvider(() => flood(200_000, letter)) });
    await h.conversation.submit("Go").settled;
    clearInterval(timer);
    expect(ticks).toBeGreaterThan(0);
    expect(textOf(h.ends("assistant")[0])).toHaveLength(200_000);
  });

  it("accepts deltas without a start and replaces repeated call ids", async () => {
    const provider = scriptedProvider(
      [
        { type: "text_delta", index: 0, delta: "hi" },
        { type: "toolcall_start", index: 1, id: "x", name: "none" },
        { type: "toolcall_end", index: 1 },
        { type: "toolcall_start", index: 2, id: "x", name: "none" },
        { type: "toolcall_end", index: 2 },
        { type: "toolcall_start", index: 3, id: "", name: "none" },
        { type: "toolcall_end", index: 3 },
        done("toolUse"),
      ],
      says("End"),
    );
    const h = harness({ provider });
    await h.conversation.submit("Go").settled;
    const ids = h.ends("toolResult").map((message) => (message.role === "toolResult" ? message.toolCallId : ""));
    expect(new Set(ids).size).toBe(3);
    expect(ids).not.toContain("");
    expect(provider.refused).toEqual([]);
    expect(scriptedModel.id).toBe(h.conversation.selection.model?.id);
  });
});

describe("UpdateMerger", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] }));
  afterEach(() => void vi.useRealTimers());

  const step = (delta: string, index = 0): DeltaStep => ({ kind: "delta", type: "text_delta", index, delta });
  function merger(size = 0) {
    const sent: string[] = [];
    const merger = new UpdateMerger({
      send: (delta) => void sent.push(delta.delta),
      snapshotSize: () => size,
      congested: () => false,
      onDrain: () => () => {},
    });
    return { merger, sent };
  }

  it("stays within 60 frames a second with one timer", () => {
    const { merger: m, sent } = merger();
    for (let ms = 0; ms < 1000; ms++) {
      m.add(step("x"));
      vi.advanceTimersByTime(1);
      expect(vi.getTimerCount()).toBeLessThanOrEqual(1);
    }
    m.flush();
    expect(sent.length).toBeLessThanOrEqual(62);
    expect(sent.length).toBeGreaterThan(50);
    expect(sent.join("")).toHaveLength(1000);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("stays within 2 MB/s of snapshots", () => {
    const { merger: m, sent } = merger(500_000);
    for (let ms = 0; ms < 2000; ms++) {
      m.add(step("x"));
      vi.advanceTimersByTime(1);
    }
    expect(sent.length).toBeLessThanOrEqual(9);
    m.flush();
    expect(sent.join("")).toHaveLength(2000);
  });

  it("never mixes two blocks", () => {
    const { merger: m, sent } = merger();
    m.add(step("a"));
    m.add(step("b"));
    m.add(step("c", 1));
    m.flush();
    expect(sent).toEqual(["a", "b", "c"]);
  });
});
