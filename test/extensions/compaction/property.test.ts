// Random trees of turns (parallel calls, errors, pictures, aborts, branches), compacted at every possible place, twice: whatever is
// kept, strict services accept every request (agent-semantics §12 item 37).
import fc from "fast-check";
import type { AgentMessage, AssistantMessage, Model, SessionEntry } from "mortise/extension";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SessionLog } from "../../../core/session/log.ts";
import { repairForProvider } from "../../../core/session/repair.ts";
import { chooseCut, itemsOf, validCuts } from "../../../extensions/compaction/_cut.ts";
import { transcript } from "../../../extensions/compaction/_transcript.ts";
import { buildRequest as buildAnthropic } from "../../../extensions/providers/_anthropic-request.ts";
import { buildRequest as buildOpenAI } from "../../../extensions/providers/_openai-request.ts";
import anthropic from "../../../extensions/providers/anthropic.ts";
import openai from "../../../extensions/providers/openai.ts";
import transport from "../../../extensions/providers/transport.ts";
import { anthropicRefusal, type FakeServer, startFakeAnthropic } from "../../support/fake-anthropic.ts";
import { openaiRefusal, startFakeOpenAI } from "../../support/fake-openai.ts";
import { collect, providerContext, providerOf, requestOf } from "../../support/provider-context.ts";
import { whyRefused } from "../../support/scripted-provider.ts";

const soak = process.env["MORTISE_SOAK"] !== undefined;
const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

type Step =
  | { kind: "user"; text: string; image: boolean }
  | { kind: "answer"; text: string; thinking: boolean; stop: "stop" | "error" | "aborted" | "length" }
  | {
      kind: "calls";
      sizes: number[];
      between: boolean;
      unanswered: number;
      image: boolean;
      stop: "toolUse" | "error" | "aborted";
    }
  | { kind: "bash"; output: string; exclude: boolean }
  | { kind: "note"; text: string }
  | { kind: "state" }
  | { kind: "branch"; back: number }
  /** As `branch` does it: into another file. */
  | { kind: "copy"; back: number }
  | { kind: "compact"; keep: number };

const text = fc.string({ unit: fc.constantFrom("a", " ", "\n", "é", "😀", "\ud800", "x".repeat(40)), maxLength: 12 });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("user" as const), text, image: fc.boolean() }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("answer" as const),
      text,
      thinking: fc.boolean(),
      stop: fc.constantFrom("stop" as const, "stop" as const, "error" as const, "aborted" as const, "length" as const),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("calls" as const),
      sizes: fc.array(fc.integer({ min: 0, max: 3000 }), { minLength: 1, maxLength: 4 }),
      between: fc.boolean(),
      unanswered: fc.integer({ min: 0, max: 5 }),
      image: fc.boolean(),
      stop: fc.constantFrom("toolUse" as const, "toolUse" as const, "toolUse" as const, "error" as const, "aborted" as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("bash" as const), output: text, exclude: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("note" as const), text }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("state" as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("copy" as const), back: fc.integer({ min: 1, max: 6 }) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("branch" as const), back: fc.integer({ min: 1, max: 6 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("compact" as const), keep: fc.integer({ min: 0, max: 2000 }) }) },
);
const steps = fc.array(step, { minLength: 1, maxLength: 24 });

let time = 0;
let ids = 0;

function answer(content: AssistantMessage["content"], stopReason: AssistantMessage["stopReason"]): AssistantMessage {
  return {
    role: "assistant",
    content,
    api: "anthropic-messages",
    provider: "anthropic",
    model: "m",
    usage: {
      input: 1,
      output: 1,
      cacheRead: 0,
      cacheWrite: 0,
      totalTokens: 2,
      cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
    },
    stopReason,
    timestamp: ++time,
    ...(stopReason === "error" || stopReason === "aborted" ? { errorMessage: "gone" } : {}),
  };
}

const store = (log: SessionLog, message: AgentMessage) => void log.append({ type: "message", message });

/** Plays the steps. Where a real run would stop and let a compaction in, `pause` is called. */
function play(list: readonly Step[], pause: (log: SessionLog) => void): SessionLog {
  let log = SessionLog.create({ cwd: "/", sessionsDir: undefined });
  store(log, { role: "user", content: "Begin", timestamp: ++time });
  for (const step of list) {
    log = perform(log, step);
    pause(log);
  }
  return log;
}

/** The log that goes on: another one after a copy. */
function perform(log: SessionLog, step: Step): SessionLog {
  if (step.kind === "copy") return log.copyPath(back(log, step.back));
  change(log, step);
  return log;
}

/** The entry so many steps above the leaf, the root at the most. */
function back(log: SessionLog, steps: number): string | null {
  let id = log.leafId;
  for (let i = 0; i < steps && id !== null; i++) id = log.parentOf(id) ?? id;
  return id;
}

function change(log: SessionLog, step: Exclude<Step, { kind: "copy" }>): void {
  switch (step.kind) {
    case "user": {
      const image = { type: "image" as const, data: png, mimeType: "image/png" };
      const content = [{ type: "text" as const, text: step.text }, ...(step.image ? [image] : [])];
      return store(log, { role: "user", content, timestamp: ++time });
    }
    case "answer": {
      const thinking = { type: "thinking" as const, thinking: "hm", thinkingSignature: "c2lnbmVk" };
      return store(log, answer([...(step.thinking ? [thinking] : []), { type: "text", text: step.text }], step.stop));
    }
    case "calls": {
      const made = step.sizes.map((size) => ({ id: `call_${++ids}`, size }));
      const blocks = made.map(({ id }) => ({ type: "toolCall" as const, id, name: "bash", arguments: { command: id } }));
      store(log, answer(blocks, step.stop));
      for (const [index, { id, size }] of made.entries()) {
        if (index === step.unanswered) continue;
        if (step.between && index === 1) store(log, { role: "user", content: "in between", timestamp: ++time });
        store(log, {
          role: "toolResult",
          toolCallId: id,
          toolName: "bash",
          content: [
            { type: "text", text: "r".repeat(size) },
            ...(step.image ? [{ type: "image" as const, data: png, mimeType: "image/png" }] : []),
          ],
          isError: size % 7 === 0,
          timestamp: ++time,
        });
      }
      return;
    }
    case "bash": {
      const record = { command: "ls", output: step.output, exitCode: 0, cancelled: false, truncated: false };
      return store(log, { role: "bashExecution", ...record, excludeFromContext: step.exclude, timestamp: ++time });
    }
    case "note":
      return void log.append({ type: "custom_message", customType: "note", content: step.text, display: true });
    case "state":
      return void log.append({ type: "custom", customType: "slot:x", data: 1 });
    case "branch":
      return log.branchTo(back(log, step.back));
    case "compact":
      return void compactLike(log, step.keep, false);
  }
}

/** The entry that the engine would append, for a budget. */
function compactLike(log: SessionLog, keep: number, force: boolean): boolean {
  const items = itemsOf(log.contextEntries(), 1);
  const cut = chooseCut(items, { keep, most: Math.max(keep, 500) }, { force, all: false, followed: false });
  if (cut.kind !== "cut") return false;
  append(log, items[cut.at]?.entry);
  return true;
}

function append(log: SessionLog, firstKept: SessionEntry | undefined): void {
  const firstKeptEntryId = firstKept?.id ?? log.append({ type: "custom", customType: "compaction:nothing-kept" }).id;
  log.append({ type: "compaction", summary: "Summary", firstKeptEntryId, tokensBefore: 1 });
}

/** Tries what `change` does to the log, looks, and takes it back. */
function trying(log: SessionLog, change: () => void, look: () => void): void {
  const leaf = log.leafId;
  change();
  look();
  log.branchTo(leaf);
}

/** The next request after a prompt. */
function nextRequest(log: SessionLog) {
  return repairForProvider([...log.context(), { role: "user", content: "Next", timestamp: ++time }]);
}

/** Where the context may be cut now; without an entry nothing is kept. */
function placesOf(log: SessionLog): { entry: SessionEntry | undefined }[] {
  const items = itemsOf(log.contextEntries(), 1);
  return [...validCuts(items), items.length].map((at) => ({ entry: items[at]?.entry }));
}

const tools = [{ name: "bash", description: "Runs", parameters: { type: "object", properties: {} } }];
const claudeModel: Model = {
  id: "m",
  name: "M",
  api: "anthropic-messages",
  provider: "anthropic",
  baseUrl: "https://x.invalid",
  reasoning: true,
  input: ["text", "image"],
  cost: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0 },
  contextWindow: 100_000,
  maxTokens: 8000,
};
const gptModel: Model = { ...claudeModel, api: "openai-completions", provider: "openai" };

/** The requests that may follow: one after a prompt, and the one that goes on in the middle of a turn. */
async function expectAccepted(log: SessionLog): Promise<void> {
  const requests = [nextRequest(log)];
  const going = repairForProvider(log.context());
  if (going.length > 0 && going.at(-1)?.role !== "assistant") requests.push(going);
  for (const messages of requests) {
    for (const thinkingLevel of ["off", "low"] as const) {
      const claude = await buildAnthropic(requestOf(claudeModel, { messages, tools, thinkingLevel }));
      expect(anthropicRefusal(jsonOf(claude.body))).toBeUndefined();
    }
    const gpt = await buildOpenAI(requestOf(gptModel, { messages, tools }), "https://x.invalid/v1");
    expect(openaiRefusal(jsonOf(gpt.body))).toBeUndefined();
  }
}

const jsonOf = (body: Uint8Array): unknown => JSON.parse(Buffer.from(body).toString());

describe("Cuts", { timeout: soak ? 600_000 : 30_000 }, () => {
  it("are accepted by strict services wherever they are made", () => {
    fc.assert(
      fc.property(steps, (list) => {
        play(list, (log) => {
          const items = itemsOf(log.contextEntries(), 1);
          for (const at of [...validCuts(items), items.length]) {
            const kept = items.slice(at).map((item) => item.message);
            trying(
              log,
              () => append(log, items[at]?.entry),
              () => {
                expect(log.context().slice(1)).toEqual(kept);
                expect(whyRefused(nextRequest(log))).toBeUndefined();
                // No result was lost: each call that is kept and had a result still has it.
                const results = new Set(kept.flatMap((message) => (message.role === "toolResult" ? [message.toolCallId] : [])));
                const before = new Set(
                  items.flatMap(({ message }) => (message.role === "toolResult" ? [message.toolCallId] : [])),
                );
                for (const message of kept)
                  if (message.role === "assistant")
                    for (const block of message.content)
                      if (block.type === "toolCall" && before.has(block.id)) expect(results.has(block.id)).toBe(true);
                // And none is kept without its call.
                const made = new Set(
                  kept.flatMap((message) =>
                    message.role === "assistant"
                      ? message.content.flatMap((block) => (block.type === "toolCall" ? [block.id] : []))
                      : [],
                  ),
                );
                for (const id of results) expect(made.has(id)).toBe(true);
              },
            );
          }
        });
      }),
      { numRuns: soak ? 5000 : 30 },
    );
  });

  it("are accepted over both services when the context is cut at every place, and after further turns at every place again", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 1, maxLength: soak ? 16 : 10 }),
        fc.array(step, { maxLength: 4 }),
        async (list, more) => {
          const log = play(list, () => {});
          for (const first of [undefined, ...placesOf(log)]) {
            const leaf = log.leafId;
            if (first !== undefined) append(log, first.entry);
            await expectAccepted(log);
            const longer = more.reduce(perform, log);
            await expectAccepted(longer);
            for (const second of placesOf(longer)) {
              const inner = longer.leafId;
              append(longer, second.entry);
              await expectAccepted(longer);
              longer.branchTo(inner);
            }
            log.branchTo(leaf);
          }
        },
      ),
      { numRuns: soak ? 400 : 8 },
    );
  });

  it("keep to the room they are given", () => {
    fc.assert(
      fc.property(
        steps,
        fc.integer({ min: 0, max: 3000 }),
        fc.integer({ min: 0, max: 1000 }),
        fc.record({ force: fc.boolean(), all: fc.boolean(), followed: fc.boolean() }),
        (list, keep, more, rules) => {
          const items = itemsOf(play(list, () => {}).contextEntries(), 1);
          const cut = chooseCut(items, { keep, most: keep + more }, rules);
          const size = (at: number) => items.slice(at).reduce((sum, item) => sum + item.tokens, 0);
          if (cut.kind === "nothing")
            expect(rules.force || size(0) <= keep || validCuts(items).every((at) => at === 0)).toBe(true);
          if (cut.kind !== "cut") return;
          expect(cut.at).toBeGreaterThan(0);
          expect(size(cut.at)).toBeLessThanOrEqual(keep + more);
          expect(cut.turnStart).toBeLessThanOrEqual(cut.at);
          expect(cut.at === items.length || validCuts(items).includes(cut.at)).toBe(true);
        },
      ),
      { numRuns: soak ? 20_000 : 200 },
    );
  });

  it("leave transcripts of bounded size and well-formed text", async () => {
    await fc.assert(
      fc.asyncProperty(steps, fc.integer({ min: 300, max: 5000 }), async (list, chars) => {
        const messages = play(list, () => {}).context();
        const made = await transcript(messages, chars);
        expect(made.length).toBeLessThanOrEqual(chars);
        expect(made.isWellFormed()).toBe(true);
      }),
      { numRuns: soak ? 5000 : 60 },
    );
  });
});

describe("Over the wire", () => {
  let claude: FakeServer;
  let gpt: FakeServer;
  beforeAll(async () => {
    [claude, gpt] = await Promise.all([startFakeAnthropic(), startFakeOpenAI()]);
    for (const fake of [claude, gpt]) fake.otherwise({ text: "fine" });
  });
  afterAll(async () => {
    await Promise.all([claude.close(), gpt.close()]);
  });

  it(
    "requests after a compaction are accepted",
    async () => {
      const ctx = providerContext({
        definitions: transport,
        services: { launch: { home: "/nowhere", cwd: "/", options: {}, env: {} } },
      });
      const shared = {
        id: "m",
        name: "M",
        reasoning: false,
        input: ["text", "image"] as ("text" | "image")[],
        cost: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0 },
        contextWindow: 100_000,
        maxTokens: 1000,
      };
      const targets: { provider: ReturnType<typeof providerOf>; model: Model }[] = [
        {
          provider: providerOf(anthropic),
          model: { ...shared, api: "anthropic-messages", provider: "anthropic", baseUrl: claude.url },
        },
        {
          provider: providerOf(openai),
          model: { ...shared, api: "openai-completions", provider: "openai", baseUrl: `${gpt.url}/v1` },
        },
      ];
      await fc.assert(
        fc.asyncProperty(steps, fc.integer({ min: 0, max: 1500 }), async (list, keep) => {
          const log = play(list, () => {});
          compactLike(log, keep, true);
          const messages = nextRequest(log);
          for (const { provider, model } of targets) {
            const tool = { name: "bash", description: "Runs", parameters: { type: "object", properties: {} } };
            const events = await collect(provider.stream(requestOf(model, { messages, tools: [tool] }), ctx));
            const last = events.at(-1);
            expect(last?.type === "error" ? last.error.message : last?.type).toBe("done");
          }
        }),
        { numRuns: soak ? 2000 : 12 },
      );
    },
    soak ? 600_000 : 60_000,
  );
});
