// Case 20: a stream that ends in the middle is never taken for whole.
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { SERVICES } from "../anthropic/_services.ts";
import type { FakeReply, FakeServer } from "../support/fake-provider.ts";
import type { DaemonProcess } from "../support/process.ts";
import { ask, prompt, sessionFiles, sessionLines, useProcesses, wait } from "./_support.ts";

const use = useProcesses();
const open: FakeServer[] = [];
afterEach(async () => {
  for (const fake of open.splice(0)) await fake.close();
});
type Raw = NonNullable<FakeReply["raw"]>;
const HALF = '{"command":"rm -rf ./build/tmp';

/** The events of one answer as each service sends them, to be spoiled: a text in two deltas. */
const EVENTS: Record<string, (first: string, second: string) => string[]> = {
  anthropic: (first, second) =>
    [
      {
        type: "message_start",
        message: {
          id: "m",
          type: "message",
          role: "assistant",
          model: "m",
          content: [],
          usage: { input_tokens: 1, output_tokens: 1 },
        },
      },
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
      { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: first } },
      { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: second } },
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 2 } },
      { type: "message_stop" },
    ].map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`),
  openai: (first, second) =>
    [
      { delta: { role: "assistant", content: "" }, finish_reason: null },
      { delta: { content: first }, finish_reason: null },
      { delta: { content: second }, finish_reason: null },
      { delta: {}, finish_reason: "stop" },
    ]
      .map((choice) =>
        JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 0, model: "m", choices: [{ index: 0, ...choice }] }),
      )
      .concat("[DONE]")
      .map((data) => `data: ${data}\n\n`),
};
/** The data of an event over two lines, parted where JSON allows white space: a reader has to join them with a line feed. */
const overTwoLines = (event: string) => event.replace(/^(data: \{[^,]*,)/m, "$1\ndata: ");

const sse = (type: string, event: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...event })}\n\n`;
const began = sse("message_start", {
  message: { id: "m", type: "message", role: "assistant", model: "m", content: [], usage: { input_tokens: 1, output_tokens: 1 } },
});
const ended = (reason: string) =>
  sse("message_delta", { delta: { stop_reason: reason }, usage: { output_tokens: 2 } }) + sse("message_stop", {});
const blockOf = (block: object, ...deltas: object[]) =>
  sse("content_block_start", { index: 0, content_block: block }) +
  deltas.map((delta) => sse("content_block_delta", { index: 0, delta })).join("");
const chunk = (delta: object, finish: string | null = null) =>
  `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 0, model: "m", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
const calling = (id: string, made: object) =>
  chunk({ role: "assistant", tool_calls: [{ index: 0, id, type: "function", function: made }] });

/** Legal calls without arguments, beside the empty text that the fakes send. */
const NO_ARGUMENTS: Record<string, (id: string) => string[]> = {
  anthropic: (id) =>
    [{}, { input: null }].map(
      (input, index) =>
        `${began}${blockOf({ type: "tool_use", id: `${id}${index}`, name: "ls", ...input })}${sse("content_block_stop", { index: 0 })}${ended("tool_use")}`,
    ),
  openai: (id) =>
    [{}, { arguments: null }].map(
      (given, index) => `${calling(`${id}${index}`, { name: "ls", ...given })}${chunk({}, "tool_calls")}data: [DONE]\n\n`,
    ),
};
/** A proxy that connects anew in the middle of a call and goes on with another answer. */
const SPLICED: Record<string, string> = {
  anthropic: `${began}${blockOf(
    { type: "tool_use", id: "s1", name: "bash", input: { command: "rm -rf ./build" } },
    { type: "input_json_delta", partial_json: HALF },
  )}${began}${blockOf({ type: "text", text: "" }, { type: "text_delta", text: "spliced" })}${sse("content_block_stop", { index: 0 })}${ended("tool_use")}`,
  openai: `${calling("s1", { name: "bash", arguments: '{"command":"rm -rf ./build' })}${calling("s2", { name: "bash", arguments: '/tmp"}' })}${chunk({}, "tool_calls")}data: [DONE]\n\n`,
};

/** Legal ways to send the same answer. */
const ODDITIES: readonly [string, (events: string[]) => Raw][] = [
  ["CRLF line ends", (events) => ({ writes: [events.join("").replaceAll("\n", "\r\n")] })],
  ["CR line ends", (events) => ({ writes: [events.join("").replaceAll("\n", "\r")] })],
  ["comment lines", (events) => ({ writes: [`: hello\n\n${events.join(": keep-alive\n\n:\n")}`] })],
  [
    "an event type nobody knows",
    (events) => ({
      writes: [...events.slice(0, 2), 'event: weather\ndata: {"type":"weather","sun":true}\n\n', ...events.slice(2)],
    }),
  ],
  [
    "fields nobody knows, an id and a retry time",
    (events) => ({ writes: events.map((event) => `id: 7\nretry: 10\ncolour: blue\n${event}`) }),
  ],
  ["data over two lines", (events) => ({ writes: events.map(overTwoLines) })],
  ["no final blank line", (events) => ({ writes: [events.join("").trimEnd()] })],
  [
    "an event in 7 writes, cut inside a character",
    (events) => {
      const bytes = Buffer.from(events.join(""));
      const middle = bytes.indexOf(Buffer.from("🧪"));
      const cuts = [0, 40, middle - 9, middle + 1, middle + 2, middle + 3, middle + 12, bytes.length];
      return { writes: cuts.slice(1).map((end, index) => bytes.subarray(cuts[index], end)), gapMs: 15 };
    },
  ],
];

describe.each(SERVICES)("case 20 ($name)", (under) => {
  const start = async (config = "retry:\n  baseDelayMs: 1\n") => {
    const fake = await under.open();
    open.push(fake);
    const daemon = use.start({ ...under.options(fake), files: { "config.yml": config } });
    await wait(daemon, "ready");
    mkdirSync(join(daemon.cwd, "build", "tmp"), { recursive: true });
    return { fake, daemon };
  };
  const stands = (daemon: DaemonProcess) => existsSync(join(daemon.cwd, "build", "tmp"));
  const refusals = (fake: FakeServer) => fake.requests.filter((request) => request.refusal !== undefined);
  const text = async (daemon: DaemonProcess) => (await ask(daemon, "get_last_assistant_text"))["text"];

  const cuts: readonly [string, FakeReply][] = [
    ["1: the socket is destroyed", { toolCalls: [{ name: "bash", json: HALF, chunk: 6, unclosed: true }], cut: "destroy" }],
    [
      "2: the connection ends in order without an end event",
      { toolCalls: [{ name: "bash", json: HALF, chunk: 6, unclosed: true }], cut: "end" },
    ],
    [
      "3: the end comes without the end of the arguments",
      { toolCalls: [{ name: "bash", json: HALF, chunk: 6, unclosed: true }] },
    ],
  ];
  it("1, 2, 3: a call whose arguments were cut never runs, and the turn is tried again", async () => {
    const { fake, daemon } = await start();
    for (const [what, reply] of cuts) {
      fake.script(reply, { text: `Recovered: ${what}` });
      const frames = await prompt(daemon, "go");
      expect(stands(daemon), what).toBe(true);
      expect(
        frames.filter((frame) => frame.type === "auto_retry_start"),
        what,
      ).toHaveLength(1);
      expect(
        frames.filter((frame) => frame.type === "tool_execution_start"),
        what,
      ).toEqual([]);
      expect(await text(daemon)).toBe(`Recovered: ${what}`);
    }
    fake.script({ raw: { writes: [SPLICED[under.name] ?? ""] } }, { text: "Recovered: spliced" });
    const frames = await prompt(daemon, "go");
    expect(stands(daemon)).toBe(true);
    expect(frames.filter((frame) => frame.type === "auto_retry_start")).toHaveLength(1);
    expect(frames.filter((frame) => frame.type === "tool_execution_start")).toEqual([]);
    expect(await text(daemon)).toBe("Recovered: spliced");
    expect(refusals(fake)).toEqual([]);
  });

  it("1: the text before the cut stays in the file and is not sent again", async () => {
    const { fake, daemon } = await start();
    fake.script({ text: "half a thought", chunk: 4, cutAfter: 4, cut: "destroy" }, { text: "Recovered" }, { text: "Fine" });
    await prompt(daemon, "go");
    await prompt(daemon, "and on");
    const kept = sessionLines(sessionFiles(daemon.home)[0] ?? "").filter((line) =>
      JSON.stringify(line).includes('"stopReason":"error"'),
    );
    expect(JSON.stringify(kept)).toMatch(/half/);
    for (const request of fake.requests) expect(JSON.stringify(request.body)).not.toMatch(/half/);
    expect(refusals(fake)).toEqual([]);
  });

  it("1: a whole call of an answer that was cut is neither run nor asked for again: it may have had effects", async () => {
    const { fake, daemon } = await start();
    const whole = { name: "bash", arguments: { command: "mkdir ran" } };
    fake.script({ toolCalls: [whole, { name: "bash", json: HALF, chunk: 6, unclosed: true }], cut: "destroy" });
    fake.otherwise({ text: "Once more" });
    const frames = await prompt(daemon, "go");
    const results = frames
      .filter((frame) => frame.type === "message_end")
      .map((frame) => frame["message"] as Record<string, unknown>)
      .filter((message) => message["role"] === "toolResult");
    // Whether the first call was whole only shows in services that close their calls; elsewhere the answer is asked for again.
    const closes = under.name === "anthropic";
    expect(results).toMatchObject(closes ? [{ isError: true }] : []);
    expect(frames.filter((frame) => frame.type === "auto_retry_start")).toHaveLength(closes ? 0 : 1);
    expect(stands(daemon)).toBe(true);
    expect(existsSync(join(daemon.cwd, "ran"))).toBe(false);
    await prompt(daemon, "next");
    expect(refusals(fake)).toEqual([]);
  });

  it("4: of two calls the one that the output limit cut is answered with an error, the whole one runs", async () => {
    const { fake, daemon } = await start();
    const whole = { name: "bash", arguments: { command: "mkdir ran" } };
    fake.script({ toolCalls: [whole, { name: "bash", json: HALF }], stop: "length" }, { text: "In smaller steps" });
    const frames = await prompt(daemon, "go");
    expect(stands(daemon)).toBe(true);
    expect(existsSync(join(daemon.cwd, "ran"))).toBe(true);
    const results = frames
      .filter((frame) => frame.type === "message_end")
      .map((frame) => frame["message"] as Record<string, unknown>)
      .filter((message) => message["role"] === "toolResult");
    expect(results.map((message) => message["isError"])).toEqual([false, true]);
    expect(JSON.stringify(results[1])).toMatch(/cut|limit/i);
    expect(await text(daemon)).toBe("In smaller steps");
    expect(refusals(fake)).toEqual([]);
  });

  it("5: a call without arguments runs with {}; a stop for tools without a call is no silent end", async () => {
    const { fake, daemon } = await start();
    fake.script({ toolCalls: [{ name: "ls", json: "" }] }, { text: "Listed" });
    const frames = await prompt(daemon, "list");
    expect(frames.find((frame) => frame.type === "tool_execution_end")).toMatchObject({ isError: false });
    expect(await text(daemon)).toBe("Listed");
    for (const body of NO_ARGUMENTS[under.name]?.("absent") ?? []) {
      fake.script({ raw: { writes: [body] } }, { text: "Listed again" });
      const again = await prompt(daemon, "list");
      expect(again.find((frame) => frame.type === "tool_execution_start")).toMatchObject({ toolName: "ls", args: {} });
      expect(again.find((frame) => frame.type === "tool_execution_end")).toMatchObject({ isError: false });
    }
    fake.script({ text: "About to", stop: "toolUse" }, { text: "Said at last" });
    await prompt(daemon, "again");
    expect(await text(daemon)).toBe("Said at last");
    expect(refusals(fake)).toEqual([]);
  });

  const bodies: readonly [string, Raw][] = [
    ["an empty body", { writes: [] }],
    ["a web page", { headers: { "content-type": "text/html" }, writes: ["<html><body>Bad gateway</body></html>"] }],
    ["a web page that says it is a stream", { writes: ["<html><body>Bad gateway</body></html>"] }],
    ["broken JSON", { writes: ["data: {bad\n\n"] }],
    ["broken JSON after a text", { writes: [...(EVENTS[under.name]?.("some", " more") ?? []).slice(0, 3), "data: {bad\n\n"] }],
  ];
  it("6, 7: a body that is no answer is an error of the turn, which is tried again", async () => {
    const { fake, daemon } = await start();
    for (const [what, raw] of bodies) {
      fake.script({ raw }, { text: `Recovered from ${what}` });
      const frames = await prompt(daemon, "go");
      expect(
        frames.filter((frame) => frame.type === "auto_retry_start"),
        what,
      ).toHaveLength(1);
      expect(await text(daemon)).toBe(`Recovered from ${what}`);
    }
    // Without retries it is the end of the run, and of nothing else: the session is one that can be gone on with.
    await ask(daemon, "set_auto_retry", { enabled: false });
    const before = fake.requests.length;
    fake.script({ raw: { writes: [] } });
    const frames = await prompt(daemon, "once");
    expect(fake.requests).toHaveLength(before + 1);
    expect(frames.filter((frame) => frame.type === "auto_retry_start")).toEqual([]);
    expect(JSON.stringify(frames.at(-1))).toContain('"stopReason":"error"');
    const { sessionFile } = await ask(daemon, "get_state");
    await daemon.end();
    const again = use.start({ ...under.options(fake), home: daemon.home });
    await ask(again, "switch_session", { sessionPath: sessionFile });
    fake.script({ text: "Gone on" });
    await prompt(again, "and on");
    expect(await text(again)).toBe("Gone on");
    expect(refusals(fake)).toEqual([]);
  });

  it("7: an error event after three deltas, and silence, are retried; agent_end always comes", { timeout: 60_000 }, async () => {
    const { fake, daemon } = await start("retry:\n  baseDelayMs: 1\nproviders:\n  idleTimeoutMs: 700\n");
    fake.script(
      { text: "one two three four", chunk: 4, cutAfter: 4, streamError: { type: "overloaded_error", message: "Overloaded" } },
      { text: "silence", hold: new Promise(() => {}) },
      { text: "Recovered" },
    );
    const frames = await prompt(daemon, "go");
    expect(frames.filter((frame) => frame.type === "auto_retry_start")).toHaveLength(2);
    expect(await text(daemon)).toBe("Recovered");
    fake.script({ text: "Bye" });
    await prompt(daemon, "thanks");
    expect(refusals(fake)).toEqual([]);
  });

  it("6: every legal way to send an answer is understood", async () => {
    const { fake, daemon } = await start();
    for (const [what, spoil] of ODDITIES) {
      const events = EVENTS[under.name]?.("größer ✓ ", `and 🧪 whole, ${what}`) ?? [];
      fake.script({ raw: spoil(events) });
      const frames = await prompt(daemon, "go");
      expect(await text(daemon)).toBe(`größer ✓ and 🧪 whole, ${what}`);
      expect(
        frames.filter((frame) => frame.type === "auto_retry_start"),
        what,
      ).toEqual([]);
    }
    fake.script({ text: "fine" });
    await prompt(daemon, "after");
    expect(refusals(fake)).toEqual([]);
  });

  it("6: an event of three megabytes and text in single characters are understood", async () => {
    const { fake, daemon } = await start();
    // Three megabytes are more than the model's window.
    await ask(daemon, "set_auto_compaction", { enabled: false });
    fake.script({ text: "größer ✓ 🧪", chunk: 1, delayMs: 1 }, { text: "x".repeat(3 * 1024 * 1024) }, { text: "fine" });
    await prompt(daemon, "split");
    expect(await text(daemon)).toBe("größer ✓ 🧪");
    await prompt(daemon, "large");
    await prompt(daemon, "after");
    expect(await text(daemon)).toBe("fine");
    expect(refusals(fake)).toEqual([]);
  });
});
