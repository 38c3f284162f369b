import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  EMPTY_RESULT_TEXT,
  MISSING_RESULT_TEXT,
  type ModelMessage,
  ProviderView,
  repairForProvider,
} from "../../../core/session/repair.ts";
import type { AgentMessage } from "../../../protocol/message.ts";
import { assistant, call, result, soak, user } from "./_helpers.ts";

/** What a strict provider refuses. */
function complaints(messages: readonly ModelMessage[]): string[] {
  const found: string[] = [];
  const used = new Set<string>();
  messages.forEach((message, i) => {
    if (message.role === "assistant") {
      const calls = message.content.flatMap((block) => (block.type === "toolCall" ? [block] : []));
      for (const [n, block] of calls.entries()) {
        const answer = messages[i + 1 + n];
        if (answer?.role !== "toolResult" || answer.toolCallId !== block.id)
          found.push(`call ${block.id} at ${i} has no result at its place`);
        if (used.has(block.id)) found.push(`call id ${block.id} again`);
        used.add(block.id);
      }
      if (message.content.length === 0) found.push(`empty answer at ${i}`);
      const after = messages[i + 1 + calls.length];
      if (after?.role === "toolResult") found.push(`result without call after ${i}`);
    } else if (message.role === "toolResult" && (i === 0 || messages[i - 1]?.role === "user"))
      found.push(`result at ${i} follows no answer`);
    if (typeof message.content === "string" ? message.content.trim() === "" : message.content.length === 0)
      found.push(`empty at ${i}`);
    for (const block of typeof message.content === "string" ? [] : message.content) {
      if (block.type === "text" && block.text.trim() === "") found.push(`empty text at ${i}`);
    }
  });
  if (/\\u0000|\\ud[89a-f]/i.test(JSON.stringify(messages))) found.push("lone surrogate or NUL");
  return found;
}

describe("pairing (case 21, item 24)", () => {
  it("a call without result gets the same placeholder each time; a real result is never replaced", () => {
    const messages = [
      user("go"),
      assistant([call("a"), call("b"), call("c", "read")], "toolUse", 77),
      result("c", "real"),
      user("more"),
    ];
    const repaired = repairForProvider(messages);
    expect(complaints(repaired)).toEqual([]);
    expect(repaired.slice(2, 5)).toEqual([
      {
        role: "toolResult",
        toolCallId: "a",
        toolName: "bash",
        content: [{ type: "text", text: MISSING_RESULT_TEXT }],
        isError: true,
        timestamp: 77,
      },
      {
        role: "toolResult",
        toolCallId: "b",
        toolName: "bash",
        content: [{ type: "text", text: MISSING_RESULT_TEXT }],
        isError: true,
        timestamp: 77,
      },
      result("c", "real"),
    ]);
    expect(JSON.stringify(repairForProvider(structuredClone(messages)))).toBe(JSON.stringify(repaired));
    expect(repairForProvider(messages).every((message, i) => message === repaired[i])).toBe(true);
  });

  it("results in another order, twice, too late, or without call", () => {
    const messages = [
      result("zero"),
      assistant([call("a"), call("b")], "toolUse"),
      result("b", "B"),
      user("steer"),
      result("a", "A"),
      result("b", "again"),
      result("x"),
    ];
    expect(repairForProvider(messages)).toEqual([
      assistant([call("a"), call("b")], "toolUse"),
      result("a", "A"),
      result("b", "B"),
      user("steer"),
    ]);
  });

  it("ids that a service uses again stay apart", () => {
    const turn = (answer: string): AgentMessage[] => [assistant([call("call_0")], "toolUse"), result("call_0", answer)];
    const repaired = repairForProvider([
      ...turn("first"),
      ...turn("second"),
      assistant([call("call_0")], "toolUse"),
      ...turn("fourth"),
    ]);
    expect(complaints(repaired)).toEqual([]);
    expect(
      repaired.map((message) => (message.role === "toolResult" ? [message.toolCallId, message.content[0]] : message.role)),
    ).toEqual([
      "assistant",
      ["call_0", { type: "text", text: "first" }],
      "assistant",
      ["call_0-2", { type: "text", text: "second" }],
      "assistant",
      ["call_0-3", { type: "text", text: MISSING_RESULT_TEXT }],
      "assistant",
      ["call_0-4", { type: "text", text: "fourth" }],
    ]);
  });

  it("of two calls with one id in one answer the first stays", () => {
    const repaired = repairForProvider([
      assistant([call("a", "read"), call("a", "bash")], "toolUse"),
      result("a", "A"),
      result("a", "again"),
    ]);
    expect(repaired).toEqual([assistant([call("a", "read")], "toolUse"), result("a", "A")]);
  });

  it("of an aborted answer text and answered calls stay, of a failed one only answered calls and what belongs to them", () => {
    const text = { type: "text" as const, text: "half" };
    const thinking = { type: "thinking" as const, thinking: "hm" };
    expect(repairForProvider([assistant([thinking, text, call("a"), call("b")], "aborted"), result("a")])).toEqual([
      assistant([text, call("a")], "aborted"),
      result("a"),
    ]);
    expect(repairForProvider([assistant([thinking, call("a")], "aborted")])).toEqual([]);
    expect(repairForProvider([assistant([text, call("a")], "error")])).toEqual([]);
    expect(repairForProvider([assistant([text, call("a")], "error"), result("a")])).toEqual([
      assistant([text, call("a")], "error"),
      result("a"),
    ]);
  });
});

describe("contents", () => {
  it("empty results say so (item 25); empty messages and blocks are left out", () => {
    const empty = { ...result("a"), content: [{ type: "text" as const, text: " \n" }], isError: true };
    const repaired = repairForProvider([
      user("  "),
      assistant([{ type: "text", text: "" }, call("a")], "toolUse"),
      empty,
      assistant([]),
      assistant("  "),
    ]);
    expect(repaired).toEqual([
      assistant([call("a")], "toolUse"),
      { ...empty, content: [{ type: "text", text: EMPTY_RESULT_TEXT }] },
    ]);
  });

  it("lone surrogates and NUL become U+FFFD, in arguments and keys too; signed thinking stays byte-exact or goes", () => {
    const repaired = repairForProvider([
      user("a\ud800b\u0000\u{1f9ed}"),
      assistant(
        [
          { type: "thinking", thinking: "s\ud800", thinkingSignature: "sig" },
          { type: "thinking", thinking: "ok", thinkingSignature: "sig" },
          call("a", "bash", { "k\udc00": ["\ud800", { x: "\u0000" }] }),
        ],
        "toolUse",
      ),
      result("a", "\udfff"),
    ]);
    expect(repaired).toEqual([
      user("a\ufffdb\ufffd\u{1f9ed}"),
      assistant(
        [
          { type: "thinking", thinking: "ok", thinkingSignature: "sig" },
          call("a", "bash", { "k\ufffd": ["\ufffd", { x: "\ufffd" }] }),
        ],
        "toolUse",
      ),
      result("a", "\ufffd"),
    ]);
  });

  it("other roles become user messages", () => {
    const bash = {
      role: "bashExecution" as const,
      command: "ls",
      output: "a ``` b",
      exitCode: 2,
      cancelled: false,
      truncated: false,
      timestamp: 1,
    };
    expect(
      repairForProvider([
        { role: "compactionSummary", summary: "S", tokensBefore: 1, timestamp: 1 },
        { role: "branchSummary", summary: "B", fromId: "x", timestamp: 1 },
        { role: "custom", customType: "c", content: "note", display: false, timestamp: 1 },
        { role: "developer", content: "dev", timestamp: 1 },
        bash,
        { ...bash, excludeFromContext: true },
      ]),
    ).toEqual([
      { role: "user", content: expect.stringContaining("<summary>\nS\n</summary>"), timestamp: 1 },
      { role: "user", content: expect.stringContaining("<summary>\nB\n</summary>"), timestamp: 1 },
      { role: "user", content: "note", timestamp: 1 },
      { role: "user", content: "dev", timestamp: 1 },
      { role: "user", content: "Ran `ls`\n````\na ``` b\n````\nExit code: 2", timestamp: 1 },
    ]);
  });

  it("an image whose data is gone is named in words", () => {
    const [message] = repairForProvider([
      { role: "user", content: [{ type: "image", data: `blob:sha256:${"0".repeat(64)}`, mimeType: "image/png" }], timestamp: 1 },
    ]);
    expect(message?.content).toEqual([{ type: "text", text: expect.stringContaining("image not available") }]);
  });
});

const id = fc.constantFrom("a", "b", "c", "a-2");
const text = fc.oneof(fc.string({ unit: "binary", maxLength: 6 }), fc.constantFrom("", " ", "\ud800", "\u0000"));
const anyMessage: fc.Arbitrary<AgentMessage> = fc.oneof(
  text.map((content) => user(content)),
  fc.record({
    role: fc.constant("custom" as const),
    customType: fc.constant("c"),
    content: text,
    display: fc.boolean(),
    timestamp: fc.constant(1),
  }),
  fc
    .tuple(
      fc.array(
        fc.oneof(
          text.map((value) => ({ type: "text" as const, text: value })),
          text.map((thinking) => ({ type: "thinking" as const, thinking })),
          fc.tuple(id, text).map(([callId, value]) => call(callId, "bash", { value })),
        ),
        { maxLength: 5 },
      ),
      fc.constantFrom("stop" as const, "toolUse" as const, "length" as const, "error" as const, "aborted" as const),
    )
    .map(([content, stop]) => assistant(content, stop)),
  fc.tuple(id, text).map(([callId, value]) => result(callId, value)),
);

it("whatever is in the history, a strict provider accepts it", () => {
  fc.assert(
    fc.property(fc.array(anyMessage, { maxLength: 25 }), (messages) => {
      const repaired = repairForProvider(messages);
      expect(complaints(repaired)).toEqual([]);
      expect(repairForProvider(messages)).toEqual(repaired);
      // Repairing twice changes nothing more.
      expect(repairForProvider(repaired)).toEqual(repaired);
    }),
    { numRuns: soak ? 20_000 : 500 },
  );
});

it("a context that grows, shrinks or changes has the form it would have from the start", () => {
  const change = fc.oneof(
    { weight: 4, arbitrary: fc.array(anyMessage, { minLength: 1, maxLength: 4 }).map((add) => ({ add, drop: 0, from: 0 })) },
    fc.record({ add: fc.array(anyMessage, { maxLength: 2 }), drop: fc.integer({ min: 1, max: 3 }), from: fc.constant(0) }),
    fc.record({ add: fc.constant([]), drop: fc.constant(0), from: fc.integer({ min: 1, max: 3 }) }),
  );
  fc.assert(
    fc.property(fc.array(change, { maxLength: 12 }), (changes) => {
      const view = new ProviderView();
      let messages: AgentMessage[] = [];
      for (const { add, drop, from } of changes) {
        messages = [...messages.slice(from, messages.length - drop), ...add];
        expect(view.repair(messages)).toEqual(repairForProvider(messages));
      }
    }),
    { numRuns: soak ? 20_000 : 500 },
  );
});

it("a further turn costs what is new: the messages before the last answer are not looked into again", () => {
  const view = new ProviderView();
  let reads = 0;
  const history = Array.from(
    { length: 2000 },
    (_, index): AgentMessage =>
      index % 2 === 0 ? user(`question ${index}`) : assistant([call(`id-${index}`)], "toolUse", index),
  ).flatMap((message, index) => (index % 2 === 0 ? [message] : [message, result(`id-${index}`, "done")]));
  const watched = history.map(
    (message) =>
      new Proxy(message, {
        get(target, name, receiver) {
          reads++;
          return Reflect.get(target, name, receiver);
        },
      }),
  );
  view.repair(watched);
  expect(reads).toBeGreaterThan(4000);
  reads = 0;
  const longer = [...watched, user("more"), assistant([call("new")], "toolUse", 1), result("new", "done")];
  expect(view.repair(longer)).toHaveLength(longer.length);
  expect(reads).toBeLessThan(60);
});

it("a long context that was just opened is prepared without holding the event loop, and the next request costs what is new", async () => {
  const texts = Array.from({ length: 20_000 }, (_, index) => `text ${index}`);
  const history = texts.map(
    (text, index): AgentMessage => (index % 2 === 0 ? user(text) : assistant([{ type: "text", text }], "stop", index)),
  );
  const view = new ProviderView();
  let turns = 0;
  let isPrepared = false;
  const counting = () => {
    turns++;
    if (!isPrepared) setImmediate(counting);
  };
  counting();
  await view.prepare(history);
  isPrepared = true;
  expect(turns).toBeGreaterThan(1);
  expect(view.repair(history)).toEqual(repairForProvider(history));
  // Another context takes nothing over from the first.
  const other = history.slice(10_000);
  await view.prepare(other);
  expect(view.repair(other)).toEqual(repairForProvider(other));
});
