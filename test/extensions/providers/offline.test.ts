import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Model, ProviderRequest } from "mortise/extension";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import offline from "../../../extensions/providers/offline.ts";
import { collect, failureOf, joined, providerContext, providerOf, requestOf } from "../../support/provider-context.ts";

const provider = providerOf(offline);
const model = (id: string): Model => {
  const found = provider.models?.find((candidate) => candidate.id === id);
  if (!found) throw new Error(`No model ${id}`);
  return found;
};
const echo = (change: Partial<ProviderRequest> & { text?: string }) =>
  collect(provider.stream(requestOf(model("echo"), change), providerContext({ definitions: offline })));

describe("offline/echo", () => {
  it("streams the last user text back in words and counts tokens", async () => {
    const events = await echo({ text: "One  two\nthree ÄÖ 😀 " });
    expect(joined(events, "text_delta")).toBe("One  two\nthree ÄÖ 😀 ");
    expect(events.filter((event) => event.type === "text_delta").length).toBeGreaterThanOrEqual(5);
    expect(events.at(-2)).toMatchObject({ type: "usage", usage: { output: expect.any(Number) } });
    expect(events.at(-1)).toEqual({ type: "done", stopReason: "stop" });
  });

  it("calls one tool for every line that says so, with unique ids", async () => {
    const events = await echo({ text: 'Please\ncall read {"path":"a.txt"}\ncall ls\ncall bash {broken\ndone' });
    expect(events.filter((event) => event.type.startsWith("toolcall"))).toEqual([
      { type: "toolcall_start", index: 1, id: "offline_1_1", name: "read" },
      { type: "toolcall_delta", index: 1, delta: '{"path":"a.txt"}' },
      { type: "toolcall_end", index: 1, arguments: { path: "a.txt" } },
      { type: "toolcall_start", index: 2, id: "offline_1_2", name: "ls" },
      { type: "toolcall_delta", index: 2, delta: "{}" },
      { type: "toolcall_end", index: 2, arguments: {} },
    ]);
    expect(events.at(-1)).toEqual({ type: "done", stopReason: "toolUse" });
  });

  it("quotes tool results instead of calling again", async () => {
    const usage = {
      input: 0,
      output: 0,
      cacheRead: 0,
      cacheWrite: 0,
      totalTokens: 0,
      cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
    };
    const events = await echo({
      messages: [
        { role: "user", content: "call read {}", timestamp: 1 },
        {
          role: "assistant",
          content: [{ type: "toolCall", id: "c1", name: "read", arguments: {} }],
          api: "offline",
          provider: "offline",
          model: "echo",
          usage,
          stopReason: "toolUse",
          timestamp: 2,
        },
        {
          role: "toolResult",
          toolCallId: "c1",
          toolName: "read",
          content: [{ type: "text", text: "contents" }],
          isError: false,
          timestamp: 3,
        },
      ],
    });
    expect(joined(events, "text_delta")).toBe("read answered: contents");
    expect(events.at(-1)).toEqual({ type: "done", stopReason: "stop" });
  });

  it("ends with an abort in the middle of a slow answer", async () => {
    const controller = new AbortController();
    const started = performance.now();
    const events = await collect(
      provider.stream(
        requestOf(model("echo"), { text: "a b c\ndelay 60000", signal: controller.signal }),
        providerContext({ definitions: offline }),
      ),
      (event) => event.type === "text_start" && controller.abort(),
    );
    expect(failureOf(events).kind).toBe("aborted");
    expect(performance.now() - started).toBeLessThan(5000);
  });

  it("lets an abort in between thousands of immediate deltas", async () => {
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(), 5);
    const events = await collect(
      provider.stream(
        requestOf(model("echo"), { text: "word ".repeat(2_000_000), signal: controller.signal }),
        providerContext({ definitions: offline }),
      ),
    );
    clearTimeout(timer);
    expect(failureOf(events).kind).toBe("aborted");
  });
});

describe("offline/script", () => {
  let dir: string;
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), "mortise-script-"));
  });
  afterEach(() => rm(dir, { recursive: true, force: true }));

  const contextFor = (file: string | undefined) =>
    providerContext({
      definitions: offline,
      services: { launch: { home: dir, cwd: dir, options: {}, env: file === undefined ? {} : { MORTISE_OFFLINE_SCRIPT: file } } },
    });
  const play = (ctx: ReturnType<typeof contextFor>, sessionId: string, change: Partial<ProviderRequest> = {}) =>
    collect(provider.stream(requestOf(model("script"), { sessionId, ...change }), ctx));

  it("plays one reply per request and keeps the place of each conversation", async () => {
    await writeFile(
      join(dir, "s.yml"),
      [
        "replies:",
        "  - { thinking: hm, text: Looking, chunk: 3, toolCalls: [{ name: read, arguments: { path: a.txt } }] }",
        "  - { text: part, error: { kind: retryable, message: Overloaded, status: 529, retryAfterMs: 5 } }",
        "  - { text: cut, stop: length, toolCalls: [{ name: write, arguments: { path: b.txt }, incomplete: true }] }",
      ].join("\n"),
    );
    const ctx = contextFor("s.yml");
    const first = await play(ctx, "a", { thinkingLevel: "low" });
    expect(joined(first, "thinking_delta")).toBe("hm");
    expect(first.flatMap((event) => (event.type === "text_delta" ? [event.delta] : []))).toEqual(["Loo", "kin", "g"]);
    expect(first.at(-1)).toEqual({ type: "done", stopReason: "toolUse" });
    const second = await play(ctx, "a");
    expect(failureOf(second)).toMatchObject({ kind: "retryable", message: "Overloaded", status: 529, retryAfterMs: 5 });
    expect(joined(await play(ctx, "b"), "text_delta")).toBe("Looking");
    const third = await play(ctx, "a");
    expect(third.map((event) => event.type)).not.toContain("toolcall_end");
    expect(third.at(-1)).toEqual({ type: "done", stopReason: "length" });
    expect(failureOf(await play(ctx, "a"))).toMatchObject({
      kind: "fatal",
      message: `The offline script "${join(dir, "s.yml")}" has 3 replies and this is request 4: add one to its "replies"`,
    });
  });

  it("says what is wrong with a missing setting, a missing file and a bad file", async () => {
    expect(failureOf(await play(contextFor(undefined), "a")).message).toContain("MORTISE_OFFLINE_SCRIPT");
    expect(failureOf(await play(contextFor("none.yml"), "a")).message).toMatch(/none\.yml": ENOENT/);
    await writeFile(join(dir, "bad.yml"), "replies:\n  - { txt: Hello }\n");
    expect(failureOf(await play(contextFor("bad.yml"), "a")).message).toMatch(/Unrecognized key: "txt".*replies\[0\]/);
    await writeFile(join(dir, "broken.yml"), "replies: [");
    expect(failureOf(await play(contextFor("broken.yml"), "a")).kind).toBe("fatal");
  });
});
