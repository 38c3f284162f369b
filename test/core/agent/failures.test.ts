import { describe, expect, it } from "vitest";
import { contextOverflow, defineHook, defineTool, turnFailed, z } from "../../../core/extension.ts";
import type { AssistantMessage } from "../../../protocol/message.ts";
import { calls, done, fail, Gate, says, scriptedProvider } from "../../support/scripted-provider.ts";
import { harness, textOf } from "./_harness.ts";

const marker = (ran: string[]) =>
  defineTool({
    name: "bash",
    description: "",
    params: z.object({ command: z.string().optional() }),
    run: (_ctx, { command }) => void ran.push(command ?? "") as never,
  });
const lastAnswer = (h: ReturnType<typeof harness>) => h.ends("assistant").at(-1) as AssistantMessage;
const half = [
  { type: "toolcall_start", index: 0, id: "a", name: "bash" },
  { type: "toolcall_delta", index: 0, delta: '{"command":"rm -rf ./build/tmp' },
] as const;

describe("a model service that fails", () => {
  it("ends the run with an error message and stays usable", async () => {
    const provider = scriptedProvider(
      [{ type: "text_start", index: 0 }, { type: "text_delta", index: 0, delta: "so far" }, fail("529 overloaded")],
      says("fine"),
    );
    const h = harness({ provider });
    expect(await h.conversation.submit("Go").settled).toMatchObject({ status: "error", errorMessage: "529 overloaded" });
    expect(lastAnswer(h)).toMatchObject({
      stopReason: "error",
      errorMessage: "529 overloaded",
      content: [{ type: "text", text: "so far" }],
    });
    expect(h.outline().slice(-3)).toEqual(["message_end", "turn_end", "agent_end"]);
    await h.conversation.submit("again").settled;
    expect(provider.refused).toEqual([]);
    expect(textOf(lastAnswer(h))).toBe("fine");
  });

  it.each([
    ["the stream just ends", [...half]],
    ["it says done inside the call", [...half, done("toolUse")]],
    ["an error follows", [...half, fail("socket hang up")]],
  ])("never runs a call that was cut: %s (public-bugs 20)", async (_name, reply) => {
    const ran: string[] = [];
    const h = harness({ provider: scriptedProvider(reply), definitions: [marker(ran)] });
    const seen: string[] = [];
    h.daemon.add(
      "r",
      "user",
      defineHook(turnFailed, ({ error, canRetry }) => void seen.push(`${error.kind} ${canRetry}`)),
    );
    expect((await h.conversation.submit("Go").settled).status).toBe("error");
    expect(ran).toEqual([]);
    expect(seen).toEqual(["retryable true"]);
    expect(h.ends("toolResult")).toEqual([]);
    expect(lastAnswer(h).content).toEqual([]);
  });

  it("treats an abort nobody asked for as a fault of the line (public-bugs 9 D)", async () => {
    const kinds: string[] = [];
    const h = harness({
      provider: scriptedProvider([fail("Request was aborted", "aborted")]),
      definitions: [defineHook(turnFailed, ({ error }) => void kinds.push(error.kind))],
    });
    await h.conversation.submit("Go").settled;
    expect(kinds).toEqual(["retryable"]);
    expect(lastAnswer(h).stopReason).toBe("error");
  });

  it("survives a provider that throws, and one that is missing", async () => {
    const h = harness({
      provider: scriptedProvider(() => {
        throw new TypeError("bug in provider");
      }),
    });
    expect(await h.conversation.submit("Go").settled).toMatchObject({ status: "error", errorMessage: "bug in provider" });
    const { registry } = h.daemon.kernel;
    const entry = registry.get("provider", "scripted");
    if (entry !== undefined) registry.swap({ remove: [entry] });
    expect((await h.conversation.submit("Go").settled).errorMessage).toContain('No provider speaks "scripted"');
  });

  it("refuses without a model before anything is stored, later than the acknowledgement", async () => {
    const h = harness({ provider: scriptedProvider(), noModel: true });
    let early = true;
    const work = h.conversation.submit("Go");
    work.catch(() => expect(early).toBe(false));
    await Promise.resolve();
    early = false;
    await expect(work).rejects.toThrow(/^No model selected\./);
    expect(h.conversation.isStreaming).toBe(false);
    expect(h.conversation.messages).toEqual([]);
    expect(h.frames).toEqual([]);
  });
});

describe("retry through turnFailed", () => {
  it("asks again within one agent_start and agent_end; the failed answer leaves the context and stays in the log (item 29)", async () => {
    const attempts: number[] = [];
    const provider = scriptedProvider([fail("429")], [fail("429")], says("ok"));
    const h = harness({
      provider,
      definitions: [
        defineHook(turnFailed, ({ attempt }) => {
          attempts.push(attempt);
          return { retry: { delayMs: 1 } };
        }),
      ],
    });
    expect((await h.conversation.submit("Go").settled).status).toBe("completed");
    expect(attempts).toEqual([1, 2]);
    expect(h.types().filter((type) => type === "agent_start" || type === "agent_end")).toEqual(["agent_start", "agent_end"]);
    expect(h.conversation.messages.map((message) => message.role)).toEqual(["user", "assistant"]);
    expect(h.log.entries.filter((entry) => entry.type === "message")).toHaveLength(4);
  });

  it("never retries an answer with a complete call (item 32), and gives the call a result", async () => {
    const provider = scriptedProvider([...calls({ id: "a", name: "bash" }).slice(0, -2), fail("cut")], says("x"));
    const ran: string[] = [];
    const h = harness({ provider, definitions: [marker(ran), defineHook(turnFailed, () => ({ retry: { delayMs: 0 } }))] });
    expect((await h.conversation.submit("Go").settled).status).toBe("error");
    expect(provider.requests).toHaveLength(1);
    expect(ran).toEqual([]);
    expect(textOf(h.ends("toolResult")[0])).toBe("Tool execution was aborted: cut");
    await h.conversation.submit("on").settled;
    expect(provider.refused).toEqual([]);
  });

  it("ends a wait at once on abort and on abortRetry, with one agent_end (public-bugs 9)", async () => {
    const waiting = new Gate();
    const provider = scriptedProvider([fail("429")], [fail("429")], says("p2"));
    const h = harness({
      provider,
      definitions: [
        defineHook(turnFailed, () => {
          setImmediate(waiting.open);
          return { retry: { delayMs: 60_000 } };
        }),
      ],
    });
    const first = h.conversation.submit("p1");
    await waiting.passed;
    expect(h.conversation.isStreaming).toBe(true);
    await new Promise((resolve) => setImmediate(resolve));
    await h.conversation.abort();
    expect((await first.settled).status).toBe("aborted");
    expect(h.types().filter((type) => type === "agent_end")).toHaveLength(1);
    const second = h.conversation.submit("p1 again");
    while (!h.conversation.abortRetry()) await new Promise((resolve) => setImmediate(resolve));
    expect((await second.settled).status).toBe("error");
    expect(h.conversation.abortRetry()).toBe(false);
    expect((await h.conversation.submit("p2").settled).status).toBe("completed");
    expect(provider.requests).toHaveLength(3);
  });
});

describe("limits", () => {
  it("asks again after empty answers, unseen, and shows the failure after the third retry", async () => {
    const provider = scriptedProvider([done()], [done()], says("at last"), [done()], [done()], [done()], [done()]);
    const h = harness({ provider });
    expect((await h.conversation.submit("Go").settled).status).toBe("completed");
    expect(h.ends("assistant").map(textOf)).toEqual(["at last"]);
    expect(await h.conversation.submit("Go").settled).toMatchObject({
      status: "error",
      errorMessage: expect.stringContaining("empty answer"),
    });
    expect(provider.requests).toHaveLength(7);
  });

  it("does the same for answers that are blank, whatever blocks they open, and tells nothing of them", async () => {
    const blank = [
      { type: "thinking_start", index: 0 },
      { type: "thinking_end", index: 0 },
      { type: "text_start", index: 1 },
      { type: "text_delta", index: 1, delta: " \n" },
      { type: "text_end", index: 1 },
      done(),
    ] as const;
    const provider = scriptedProvider([...blank], says("  at last"), [...blank], [...blank], [...blank], [...blank]);
    const h = harness({ provider });
    expect((await h.conversation.submit("Go").settled).status).toBe("completed");
    expect(h.ends("assistant").map(textOf)).toEqual(["  at last"]);
    expect(h.outline().filter((type) => type.startsWith("message_"))).toEqual([
      "message_start",
      "message_end",
      "message_start",
      "message_update",
      "message_end",
    ]);
    const before = h.frames.length;
    expect(await h.conversation.submit("Go").settled).toMatchObject({ status: "error" });
    expect(h.frames.slice(before).some((frame) => frame.type === "message_update")).toBe(false);
    expect(h.ends("assistant").at(-1)).toMatchObject({ errorMessage: "The model returned an empty answer 4 times in a row" });
  });

  it("tells what was held back of an answer in its order once there is something to see", async () => {
    const provider = scriptedProvider([
      { type: "text_start", index: 0 },
      { type: "text_delta", index: 0, delta: " " },
      { type: "text_delta", index: 0, delta: "a" },
      { type: "text_end", index: 0 },
      done(),
    ]);
    const h = harness({ provider });
    await h.conversation.submit("Go").settled;
    const updates = h.frames.filter((frame) => frame.type === "message_update");
    expect(updates.map((frame) => frame["assistantMessageEvent"])).toMatchObject([
      { type: "text_start", contentIndex: 0 },
      { type: "text_delta", delta: " " },
      { type: "text_delta", delta: "a" },
      { type: "text_end", content: " a" },
    ]);
    expect(updates.map((frame) => (frame["message"] as { content: { text: string }[] }).content[0]?.text)).toEqual([
      "",
      " ",
      " a",
      " a",
    ]);
  });

  it("asks for words when an answer holds nothing but reasoning, and shows the failure after the third time", async () => {
    const thinking = [
      { type: "thinking_start", index: 0 },
      { type: "thinking_delta", index: 0, delta: "hmm" },
      { type: "thinking_end", index: 0 },
      done(),
    ] as const;
    const provider = scriptedProvider([...thinking], says("said"), () => [...thinking]);
    const h = harness({ provider });
    expect((await h.conversation.submit("Go").settled).status).toBe("completed");
    expect(textOf(h.ends("assistant").at(-1) as never)).toBe("said");
    expect(await h.conversation.submit("Go").settled).toMatchObject({
      status: "error",
      errorMessage: "The model gave nothing but reasoning 4 times in a row",
    });
    expect(provider.requests).toHaveLength(6);
    expect(provider.refused).toEqual([]);
  });

  it("ends repeated reasoning that fills the output limit (item 27)", async () => {
    const thinking = [
      { type: "thinking_start", index: 0 },
      { type: "thinking_delta", index: 0, delta: "hmm" },
      { type: "thinking_end", index: 0 },
      done("length"),
    ] as const;
    const provider = scriptedProvider(() => [...thinking]);
    const h = harness({ provider });
    expect((await h.conversation.submit("Go").settled).status).toBe("error");
    expect(provider.requests).toHaveLength(4);
    expect(h.frames.find((frame) => frame.type === "notice")).toMatchObject({ level: "error" });
    expect(provider.refused).toEqual([]);
  });

  it("lets one extension make room after an overflow, a bounded number of times (item 36)", async () => {
    const provider = scriptedProvider(() => [fail("prompt is too long", "overflow")]);
    let asked = 0;
    const h = harness({
      provider,
      definitions: [
        defineHook(contextOverflow, ({ reason }) => {
          expect(reason).toBe("overflow");
          asked++;
          return { continue: true };
        }),
      ],
    });
    expect((await h.conversation.submit("Go").settled).status).toBe("error");
    expect(asked).toBe(3);
  });

  it("tells a model that repeats one call", async () => {
    let turns = 0;
    const provider = scriptedProvider((_request, turn) =>
      ++turns > 9 ? says("enough") : calls({ id: `c${turn}`, name: "bash" }),
    );
    const h = harness({ provider, definitions: [marker([])] });
    await h.conversation.submit("Go").settled;
    const corrections = h.conversation.messages.filter((message) => message.role === "developer").map(textOf);
    expect(corrections).toHaveLength(2);
    expect(corrections[0]).toContain("4 times in a row");
    expect(provider.refused).toEqual([]);
  });
});
