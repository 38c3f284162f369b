import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { frameEmitted } from "../../../core/agent/hook-points.ts";
import { definePromptSection } from "../../../core/agent/system-prompt.ts";
import {
  beforeAgentStart,
  contextBuilding,
  defineHook,
  defineSlot,
  defineTool,
  messageEnded,
  providerRequest,
  z,
} from "../../../core/extension.ts";
import { SessionLog } from "../../../core/session/log.ts";
import type { Frame } from "../../../protocol/frame.ts";
import type { AgentMessage } from "../../../protocol/message.ts";
import { calls, done, Gate, says, scriptedModel, scriptedProvider } from "../../support/scripted-provider.ts";
import { harness, textOf } from "./_harness.ts";

async function withDir(run: (dir: string) => Promise<void>): Promise<void> {
  const dir = await mkdtemp(join(tmpdir(), "mortise-agent-"));
  try {
    await run(dir);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

describe("what is kept", () => {
  it("has the file before the user message ends and before the request, and each message before its message_end", async () => {
    await withDir(async (dir) => {
      const log = SessionLog.create({ cwd: dir, sessionsDir: dir });
      const file = log.file ?? "";
      let fileAtRequest = "";
      const provider = scriptedProvider(() => {
        fileAtRequest = readFileSync(file, "utf8");
        return says("Answer");
      });
      const h = harness({ provider, log });
      const stored: boolean[] = [];
      const { sendFrame } = h.env;
      h.env.sendFrame = (frame: Frame) => {
        if (frame.type === "message_end") {
          const text = textOf(frame["message"] as AgentMessage);
          stored.push(
            existsSync(file) && log.entries.some((entry) => entry.type === "message" && textOf(entry.message) === text),
          );
        }
        sendFrame(frame);
      };
      expect(existsSync(file)).toBe(false);
      await h.conversation.submit("Question").settled;
      expect(stored).toEqual([true, true]);
      expect(fileAtRequest).toContain("Question");
      expect(await readFile(file, "utf8")).toContain("Answer");
      await h.conversation.close();
    });
  });

  it("restores slots from the log and resets those that no longer fit", async () => {
    await withDir(async (dir) => {
      const log = SessionLog.create({ cwd: dir, sessionsDir: dir });
      const h = harness({ provider: scriptedProvider(says("x")), log });
      const slot = defineSlot({ name: "plan", schema: z.array(z.string()), initial: () => [], persist: true });
      h.conversation.slot(slot).set(["a"]);
      expect(existsSync(log.file ?? "")).toBe(false);
      await h.conversation.submit("Go").settled;
      h.conversation.slot(slot).update((value) => [...value, "b"]);
      expect(() => h.conversation.slot(slot).set([1] as never)).toThrow('Slot "plan"');
      await h.conversation.close();
      const again = harness({ provider: scriptedProvider(), log: (await SessionLog.open(log.file ?? "")).log });
      expect(again.conversation.slot(slot).get()).toEqual(["a", "b"]);
      const changed = defineSlot({
        name: "plan",
        schema: z.object({ items: z.number() }),
        initial: () => ({ items: 0 }),
        persist: true,
      });
      expect(again.conversation.slot(changed).get()).toEqual({ items: 0 });
      expect(again.errors).toHaveLength(1);
      await again.conversation.close();
    });
  });

  it("stores records of host commands at the end of the turn, silently", async () => {
    const provider = scriptedProvider(calls({ id: "a", name: "t" }), says("End"));
    const h = harness({
      provider,
      definitions: [
        defineTool({
          name: "t",
          description: "",
          params: z.object({}),
          run: () => {
            h.conversation.recordBash({
              role: "bashExecution",
              command: "ls",
              output: "x",
              cancelled: false,
              truncated: false,
              timestamp: 1,
            });
            expect(h.conversation.messages.some((message) => message.role === "bashExecution")).toBe(false);
            return "ran";
          },
        }),
      ],
    });
    await h.conversation.submit("Go").settled;
    expect(h.conversation.messages.map((message) => message.role)).toEqual([
      "user",
      "assistant",
      "toolResult",
      "bashExecution",
      "assistant",
    ]);
    expect(h.ends("bashExecution")).toEqual([]);
    expect(provider.refused).toEqual([]);
  });

  it("records a choice of model once", () => {
    const h = harness({ provider: scriptedProvider() });
    h.conversation.select({ model: { ...scriptedModel, id: "other" }, thinkingLevel: "high" });
    h.conversation.select({ model: { ...scriptedModel, id: "other" }, thinkingLevel: "high" });
    expect(h.log.entries.map((entry) => entry.type)).toEqual(["model_change", "thinking_level_change"]);
  });

  it("counts the context: usage of the last answer and an estimate of the rest", async () => {
    const h = harness({ provider: scriptedProvider(says("x")) });
    await h.conversation.submit("Go").settled;
    expect(h.conversation.contextUsage()).toEqual({ tokens: 15, contextWindow: 100_000, percent: 0.015 });
    await h.conversation.submitCustom({ customType: "n", content: "y".repeat(400), display: true });
    expect(h.conversation.contextUsage()?.tokens).toBe(115);
    expect(h.conversation.contextUsage()).toBe(h.conversation.contextUsage());
  });
});

describe("what the model is told", () => {
  const section = (name: string, order: number, stable: boolean, text: () => string | undefined, more: object = {}) =>
    definePromptSection({ name, order, stable, render: text, ...more });

  it("joins sections to blocks: stable, environment, appends; a throwing one is reported and left out", async () => {
    const h = harness({
      provider: scriptedProvider(says("1"), says("2")),
      launch: { appendSystemPrompt: ["appended by option"] },
      definitions: [
        section("cwd", 2, false, () => "in /tmp"),
        section("role", 1, true, () => "You help."),
        section("rules", 2, true, () => "Be brief."),
        section("none", 3, true, () => undefined),
        section("file", 4, false, () => "from a file", { append: true }),
        section("bad", 5, true, () => {
          throw new Error("broken section");
        }),
      ],
    });
    const blocks = ["You help.\n\nBe brief.", "in /tmp", "from a file", "appended by option"];
    expect(await h.conversation.systemPrompt()).toEqual(blocks);
    await h.conversation.submit("a").settled;
    await h.conversation.submit("b").settled;
    expect(h.provider.requests.map((request) => request.systemPrompt)).toEqual([blocks, blocks]);
    expect(h.daemon.frames.some((frame) => frame.type === "extension_error")).toBe(true);
  });

  it("reads tools and prompt at every model call; a tool added in a run is offered in its next request (item 61)", async () => {
    const extra = defineTool({ name: "extra", description: "", params: z.object({}), promptSnippet: "x", run: () => "" });
    const h = harness({
      provider: scriptedProvider(calls({ id: "a", name: "t" }), says("End")),
      definitions: [
        defineTool({
          name: "t",
          description: "",
          params: z.object({}),
          run: () => {
            h.daemon.add(
              "later",
              "user",
              extra,
              section("later", 9, true, () => "new section"),
            );
            return "ok";
          },
        }),
        defineTool({ name: "hidden", description: "", params: z.object({}), hidden: true, run: () => "" }),
        defineTool({ name: "absent", description: "", params: z.object({}), available: () => false, run: () => "" }),
      ],
    });
    await h.conversation.submit("Go").settled;
    const [first, second] = h.provider.requests;
    expect(first?.tools.map((tool) => tool.name)).toEqual(["t"]);
    expect(second?.tools.map((tool) => tool.name)).toEqual(["t", "extra"]);
    expect([first?.systemPrompt, second?.systemPrompt]).toEqual([[], ["new section"]]);
    const schemas = h.conversation.toolSchemas();
    expect(h.conversation.toolSchemas()).toBe(schemas);
    h.conversation.setActiveTools(["hidden"]);
    expect(h.conversation.toolSchemas().map((tool) => tool.name)).toEqual(["hidden"]);
  });

  it("keeps a prompt change of beforeAgentStart within its run (item 65)", async () => {
    let first = true;
    const h = harness({
      provider: scriptedProvider(says("1"), says("2")),
      definitions: [
        section("role", 1, true, () => "base"),
        defineHook(beforeAgentStart, (plan) => {
          if (!first) return;
          first = false;
          const note: AgentMessage = { role: "custom", customType: "note", content: "extra", display: false, timestamp: 1 };
          return { ...plan, systemPrompt: [...plan.systemPrompt, "only now"], extraMessages: [note] };
        }),
      ],
    });
    await h.conversation.submit("a").settled;
    await h.conversation.submit("b").settled;
    expect(h.provider.requests.map((request) => request.systemPrompt)).toEqual([["base", "only now"], ["base"]]);
    expect(h.conversation.messages.map((message) => message.role)).toEqual(["user", "custom", "assistant", "user", "assistant"]);
  });

  it("lets handlers change one call's messages and request without storing it", async () => {
    const h = harness({
      provider: scriptedProvider(says("1")),
      definitions: [
        defineHook(contextBuilding, (value) => ({
          ...value,
          messages: [...value.messages, { role: "user" as const, content: "injected", timestamp: 1 }],
        })),
        defineHook(providerRequest, (value) => ({ ...value, request: { ...value.request, maxTokens: 7 } })),
      ],
    });
    await h.conversation.submit("a").settled;
    expect(h.provider.requests[0]).toMatchObject({ maxTokens: 7 });
    expect(textOf(h.provider.requests[0]?.messages.at(-1))).toBe("injected");
    expect(h.conversation.messages).toHaveLength(2);
  });
});

describe("frames and handlers", () => {
  it("writes frames before any handler runs, never waits for one, and shows handlers every end in order (item 60)", async () => {
    const hold = new Gate();
    const seen: string[] = [];
    const h = harness({
      provider: scriptedProvider(says("a", "b")),
      definitions: [
        defineHook(frameEmitted, async ({ frame }) => {
          expect(h.frames.some((sent) => sent.type === frame.type)).toBe(true);
          await hold.passed;
          seen.push(frame.type);
        }),
        defineHook(messageEnded, ({ message }) => void seen.push(`ended ${message.role}`)),
      ],
    });
    await h.conversation.submit("Go").settled;
    expect(seen).toEqual([]);
    expect(h.types().at(-1)).toBe("agent_end");
    hold.open();
    while (!seen.includes("agent_end")) await new Promise((resolve) => setImmediate(resolve));
    expect(seen.filter((type) => type !== "message_update")).toEqual([
      ...["agent_start", "turn_start", "message_start", "message_end", "ended user", "message_start"],
      ...["message_end", "ended assistant", "turn_end", "agent_end"],
    ]);
  });

  it("sends nothing to the host while detached", async () => {
    const h = harness({ provider: scriptedProvider(says("a")) });
    const heard: string[] = [];
    h.conversation.onFrame((frame) => void heard.push(frame.type));
    h.conversation.setAttached(false);
    await h.conversation.submit("Go").settled;
    expect(h.frames).toEqual([]);
    expect(heard.at(-1)).toBe("agent_end");
  });
});

describe("a conversation that is taken", () => {
  it("is compacting at once, holds prompts, runs them afterwards, and is given up by abort", async () => {
    const h = harness({ provider: scriptedProvider(says("1"), says("2")) });
    const taken = h.conversation.take("compact");
    expect(h.conversation.isCompacting).toBe(true);
    expect(() => h.conversation.take("handoff")).toThrow("Compaction already in progress");
    const first = h.conversation.submit("one");
    const second = h.conversation.submit("two");
    await Promise.all([first, second]);
    expect(h.conversation.isStreaming).toBe(false);
    taken.signal.addEventListener("abort", () => taken.release());
    await h.conversation.abort();
    expect(h.conversation.isCompacting).toBe(false);
    expect((await first.settled).status).toBe("completed");
    await second.settled;
    await h.conversation.whenIdle();
    expect(h.conversation.messages.filter((message) => message.role === "user").map(textOf)).toEqual(["one", "two"]);
  });

  it("closes for good", async () => {
    const never = new Gate();
    const h = harness({ provider: scriptedProvider([never, done()]) });
    const work = h.conversation.submit("Go");
    await work;
    await h.conversation.close();
    expect((await work.settled).status).toBe("aborted");
    await expect(h.conversation.submit("more")).rejects.toThrow("closed");
  });

  it("continues without a new message only when there is something to answer", async () => {
    const h = harness({ provider: scriptedProvider(says("1")) });
    await expect(h.conversation.continue()).rejects.toThrow("No messages to continue from");
    await h.conversation.submitCustom({ customType: "n", content: "hello", display: true });
    expect((await h.conversation.continue().settled).status).toBe("completed");
    await expect(h.conversation.continue()).rejects.toThrow("No messages to continue from");
  });
});
