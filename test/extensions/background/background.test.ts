// Background conversations (000_…): what the wire transcripts 05–10 do not show.
import { existsSync, readFileSync } from "node:fs";
import { setImmediate as turn } from "node:timers/promises";
import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import type { ProviderEvent } from "../../../core/extension.ts";
import { BackgroundConversations, defineTool, Jobs, z } from "../../../core/extension.ts";
import { startDaemon, type TestDaemon } from "../../../core/testing.ts";
import type { Frame } from "../../../protocol/frame.ts";
import {
  calls,
  done,
  Gate,
  type ScriptedProvider,
  says,
  scriptedModel,
  scriptedProvider,
} from "../../support/scripted-provider.ts";

let daemon: TestDaemon | undefined;
afterEach(async () => {
  await daemon?.stop();
  daemon = undefined;
});

async function start(
  provider: ScriptedProvider,
  options: { tools?: unknown[]; files?: Record<string, string>; answers?: Record<string, { confirmed: boolean }> } = {},
) {
  const { tools = [], files = {}, answers = {} } = options;
  daemon = await startDaemon({ extensions: { scripted: [[provider.definition, ...tools]] }, files, answers });
  daemon.daemon.conversations.attached.select({ model: scriptedModel });
  return daemon;
}

/** An answer that stays open at the gate after its first delta. */
const held = (gate: Gate, text: string) => [
  { type: "start" as const },
  { type: "text_start" as const, index: 0 },
  { type: "text_delta" as const, index: 0, delta: text },
  gate,
  done(),
];

async function streaming(d: TestDaemon, message: string): Promise<void> {
  const after = d.frames.length;
  await d.ask("prompt", { message });
  await d.next("message_update", { after });
}

const closed = (d: TestDaemon, sessionId: unknown) =>
  new Promise<void>((resolve) => {
    const { conversations } = d.daemon;
    if (conversations.get(String(sessionId)) === undefined) return resolve();
    const off = conversations.onChange((change) => {
      if (change.type !== "closed" || change.conversation.id !== sessionId) return;
      off();
      resolve();
    });
  });

type Background = { sessionId: string; sessionFile: string; streaming: boolean; displaced: string[]; message: string };
const movedOf = (data: Record<string, unknown>) => data["background"] as Background;
const list = async (d: TestDaemon) => (await d.ask("get_background_sessions"))["sessions"] as Record<string, unknown>[];

describe("a conversation in the background", () => {
  it("finishes its turn unseen, is disposed then, and its session is complete and unlocked", async () => {
    const gate = new Gate();
    const d = await start(scriptedProvider(held(gate, "from behind")));
    await streaming(d, "Go on");
    const moved = movedOf(await d.ask("new_session", { background: true }));
    const from = d.frames.length;
    const gone = closed(d, moved.sessionId);
    gate.open();
    await gone;
    expect(await list(d)).toEqual([]);
    expect(d.frames.slice(from).map((frame) => frame.type)).toEqual(["response"]);
    expect(readFileSync(moved.sessionFile, "utf8")).toContain("from behind");
    expect(existsSync(`${moved.sessionFile}.lock`)).toBe(false);
    await d.ask("switch_session", { sessionPath: moved.sessionFile });
    expect((await d.ask("get_state"))["messageCount"]).toBe(2);
  });

  it("keeps going for queued follow-ups", async () => {
    const gate = new Gate();
    const d = await start(scriptedProvider(held(gate, "one"), says("two")));
    await streaming(d, "Go on");
    await d.ask("follow_up", { message: "And then" });
    const moved = movedOf(await d.ask("new_session", { background: true }));
    const gone = closed(d, moved.sessionId);
    gate.open();
    await gone;
    expect(readFileSync(moved.sessionFile, "utf8")).toContain("two");
  });

  it("without a turn stays only until its jobs have ended and their results are answered", async () => {
    const d = await start(scriptedProvider(says("idle"), says("read it")));
    await d.prompt("Hello");
    const { conversations, kernel } = d.daemon;
    let finish: () => void = () => {};
    kernel.services.use(Jobs).start({
      conversation: conversations.attached,
      type: "bash",
      label: "build",
      run: () =>
        new Promise((resolve) => {
          finish = () => resolve({ text: "built" });
        }),
    });
    const other = conversations.create();
    const first = conversations.attached;
    // `switch_session` moves it; with `background` and no turn `new_session` would reset in place.
    const table = kernel.services.use(BackgroundConversations);
    const moved = await table.moveBehind(other);
    expect(moved).toMatchObject({ sessionId: first.id, streaming: false, displaced: [] });
    expect(moved?.message).toContain("until its jobs are done");
    expect(await list(d)).toMatchObject([{ sessionId: first.id, streaming: false, stopping: false }]);
    const gone = closed(d, first.id);
    finish();
    await gone;
    const text = readFileSync(String(moved?.sessionFile), "utf8");
    expect(text).toContain("built");
    expect(text).toContain("read it");
    expect(await list(d)).toEqual([]);
  });

  it("is stopped at once when session.backgroundLimit is 0", async () => {
    const d = await start(scriptedProvider(held(new Gate(), "one")), {
      files: { "config.yml": "session:\n  backgroundLimit: 0\n" },
    });
    await streaming(d, "Go on");
    expect(await d.ask("new_session", { background: true })).toEqual({ cancelled: false });
    expect(await list(d)).toEqual([]);
    expect(d.daemon.conversations.list()).toHaveLength(1);
  });

  it("counts as stopping until it is disposed, and its file opens once it has let go", async () => {
    const gate = new Gate();
    const d = await start(scriptedProvider(held(gate, "one"), held(new Gate(), "two")), {
      files: { "config.yml": "session:\n  backgroundLimit: 1\n" },
    });
    await streaming(d, "First");
    const first = movedOf(await d.ask("new_session", { background: true }));
    await streaming(d, "Second");
    const second = d.request("new_session", { background: true });
    const listed = d.request("get_background_sessions");
    const back = d.request("switch_session", { sessionPath: first.sessionFile });
    expect(movedOf((await second)["data"] as Record<string, unknown>).displaced).toEqual([first.sessionId]);
    const sessions = ((await listed)["data"] as { sessions: Record<string, unknown>[] }).sessions;
    for (const session of sessions) expect(session["stopping"]).toBe(session["sessionId"] === first.sessionId);
    expect((await back)["success"]).toBe(true);
    expect((await d.ask("get_state"))["sessionId"]).toBe(first.sessionId);
    const [left] = await list(d);
    await d.ask("cancel_background_session", { sessionId: left?.["sessionId"] });
  });
});

describe("dialogs of a detached conversation", () => {
  const asks = (gate: Gate, told: unknown[]) =>
    defineTool({
      name: "asks",
      description: "Asks at a given moment",
      params: z.object({}),
      async run(ctx) {
        await gate.passed;
        const answer = await ctx.ui.confirm({ title: "Delete it?", message: "All of it" });
        await ctx.ui.setStatus({ statusKey: "k", statusText: "hidden" });
        told.push(answer);
        return String(answer);
      },
    });

  it("take their default at once, and the host is told", async () => {
    const gate = new Gate();
    const told: unknown[] = [];
    const d = await start(scriptedProvider(calls({ id: "c", name: "asks" }), says("fine")), { tools: [asks(gate, told)] });
    const after = d.frames.length;
    await d.ask("prompt", { message: "Go" });
    await d.next("tool_execution_start", { after });
    const moved = movedOf(await d.ask("new_session", { background: true }));
    const from = d.frames.length;
    const gone = closed(d, moved.sessionId);
    gate.open();
    const notice = await d.next((frame) => frame["method"] === "notify", { after: from });
    expect(notice["message"]).toContain('"Delete it?"');
    await gone;
    expect(told).toEqual([false]);
    expect(d.frames.slice(from).map((frame) => frame["method"])).toEqual(["notify"]);
  });

  it("that are open when it is detached are cancelled towards the host", async () => {
    const gate = new Gate();
    const told: unknown[] = [];
    const d = await start(scriptedProvider(calls({ id: "c", name: "asks" }), says("fine")), { tools: [asks(gate, told)] });
    gate.open();
    await d.ask("prompt", { message: "Go" });
    const dialog = await d.next((frame) => frame["method"] === "confirm", { after: 0 });
    const moved = movedOf(await d.ask("new_session", { background: true }));
    expect(moved.streaming).toBe(true);
    await d.next((frame) => frame["method"] === "cancel" && frame["targetId"] === dialog["id"], { after: 0 });
    await d.next((frame) => frame["method"] === "notify", { after: 0 });
    await closed(d, moved.sessionId);
    expect(told).toEqual([false]);
    // The late answer of the host is ignored.
    d.send({ type: "extension_ui_response", id: dialog["id"], confirmed: true });
    expect((await d.request("get_state"))["success"]).toBe(true);
  });

  it("reach the host again after it is re-attached", async () => {
    const gate = new Gate();
    const told: unknown[] = [];
    const d = await start(scriptedProvider(calls({ id: "c", name: "asks" }), says("fine")), {
      tools: [asks(gate, told)],
      answers: { confirm: { confirmed: true } },
    });
    const after = d.frames.length;
    await d.ask("prompt", { message: "Go" });
    await d.next("tool_execution_start", { after });
    const moved = movedOf(await d.ask("new_session", { background: true }));
    await d.ask("switch_session", { sessionPath: moved.sessionFile });
    gate.open();
    await d.next("agent_end", { after });
    expect(told).toEqual([true]);
  });
});

describe("at the end of input", () => {
  it("a background conversation may finish", async () => {
    const gate = new Gate();
    const d = await start(scriptedProvider(held(gate, "last words")), {});
    await streaming(d, "Go on");
    const moved = movedOf(await d.ask("new_session", { background: true }));
    const closing = d.daemon.close("ended");
    setTimeout(() => gate.open(), 50);
    await closing;
    const text = readFileSync(moved.sessionFile, "utf8");
    expect(text).toContain('"stopReason":"stop"');
    expect(text).toContain("last words");
  });

  it.runIf(process.env["MORTISE_SOAK"])("one that still runs after 5 s is stopped", { timeout: 15_000 }, async () => {
    const d = await start(scriptedProvider(held(new Gate(), "for ever")));
    await streaming(d, "Go on");
    const moved = movedOf(await d.ask("new_session", { background: true }));
    const began = performance.now();
    await d.daemon.close("ended");
    const took = performance.now() - began;
    expect(took).toBeGreaterThan(4900);
    expect(took).toBeLessThan(8000);
    expect(readFileSync(moved.sessionFile, "utf8")).toContain('"stopReason":"aborted"');
  });
});

describe("conversations attached and detached at random", () => {
  it("send no frame while they are detached", { timeout: 120_000 }, async () => {
    const steps = process.env["MORTISE_SOAK"] ? 200 : 30;
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(99), { minLength: steps, maxLength: steps }), async (choices) => {
        let stop = false;
        async function* chatter(id: string): AsyncGenerator<ProviderEvent> {
          yield { type: "text_start", index: 0 };
          while (!stop) {
            yield { type: "text_delta", index: 0, delta: `<${id}>` };
            await turn();
          }
          yield done();
        }
        const provider = scriptedProvider((request) => chatter(request.sessionId ?? ""));
        const d = await start(provider, { files: { "config.yml": "session:\n  backgroundLimit: 1000\n" } });
        const { conversations } = d.daemon;
        const attachedFrom: { at: number; id: string }[] = [{ at: 0, id: conversations.attached.id }];
        conversations.onChange(({ type, conversation }) => {
          if (type === "attached") attachedFrom.push({ at: d.frames.length, id: conversation.id });
        });
        for (const choice of choices) {
          if (!conversations.attached.isStreaming) await streaming(d, "Go");
          const behind = await list(d);
          const target = behind[choice % Math.max(1, behind.length)];
          if (choice < 50 || target === undefined) await d.ask("new_session", { background: true });
          else await d.ask("switch_session", { sessionPath: target["sessionFile"] });
        }
        stop = true;
        await Promise.all(conversations.list().map((conversation) => conversation.whenIdle()));
        expect(strayFrames(d.frames, attachedFrom)).toEqual([]);
        expect(attachedFrom.length).toBeGreaterThan(steps / 2);
        await daemon?.stop();
        daemon = undefined;
      }),
      { numRuns: 1 },
    );
  });
});

/** Frames that name a conversation which was not attached when they were sent. */
function strayFrames(frames: readonly Frame[], attachedFrom: readonly { at: number; id: string }[]): string[] {
  const stray: string[] = [];
  for (const [index, frame] of frames.entries()) {
    if (frame.type === "response") continue;
    const named = /<([0-9a-f-]{36})>/.exec(JSON.stringify(frame))?.[1];
    const attached = attachedFrom.findLast(({ at }) => at <= index)?.id;
    if (named !== undefined && named !== attached) stray.push(`${frame.type} of ${named} while ${attached} was attached`);
  }
  return stray;
}
