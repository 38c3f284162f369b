import { existsSync } from "node:fs";
import { mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ConversationTable } from "../../../core/agent/conversations.ts";
import { sessionClosing } from "../../../core/agent/hook-points.ts";
import { defineHook, defineTool, z } from "../../../core/extension.ts";
import type { ConversationChange } from "../../../core/services/agent.ts";
import { calls, done, Gate, says, scriptedModel, scriptedProvider } from "../../support/scripted-provider.ts";
import { harness, textOf } from "./_harness.ts";

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "mortise-table-"));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

function table(...script: Parameters<typeof scriptedProvider>) {
  const provider = scriptedProvider(...script);
  const h = harness({ provider });
  const conversations = new ConversationTable({ env: h.env, cwd: dir, sessionsDir: () => dir });
  const changes: string[] = [];
  conversations.onChange((change: ConversationChange) => void changes.push(change.type));
  const first = conversations.create({ selection: { model: scriptedModel } });
  conversations.attach(first);
  return { ...h, conversations, changes, first, provider };
}

const begun = [
  { type: "text_start", index: 0 },
  { type: "text_delta", index: 0, delta: "so" },
] as const;

describe("ConversationTable", () => {
  it("re-points the host without replay: a detached run goes on unseen and is attached again later", async () => {
    const gate = new Gate();
    const t = table(
      [
        { type: "text_start", index: 0 },
        { type: "text_delta", index: 0, delta: "be" },
        gate,
        { type: "text_delta", index: 0, delta: "hind" },
        done(),
      ],
      says("front"),
    );
    const work = t.first.submit("background");
    await t.frame((frame) => frame.type === "message_update");
    const second = t.conversations.create();
    t.conversations.attach(second);
    expect([t.first.isAttached, second.isAttached, t.conversations.attached === second]).toEqual([false, true, true]);
    const before = t.frames.length;
    gate.open();
    expect((await work.settled).status).toBe("completed");
    expect(t.frames).toHaveLength(before);
    await second.submit("hello").settled;
    expect(t.ends("assistant").map(textOf)).toEqual(["front"]);
    t.conversations.attach(t.first);
    expect(t.first.messages.map(textOf)).toEqual(["background", "behind"]);
    expect(t.changes).toEqual(["created", "attached", "created", "detached", "attached", "detached", "attached"]);
    await t.conversations.closeAll();
    expect(t.conversations.list()).toEqual([]);
  });

  it("replaces: no agent_end of the interrupted run, queues dropped, modes and selection taken over", async () => {
    const never = new Gate();
    const t = table([...begun, never, done()], says("x"));
    t.first.queue.steeringMode = "all";
    t.first.messageUpdates = "delta";
    t.first.setActiveTools(["a"]);
    const work = t.first.submit("one");
    await t.frame((frame) => frame.type === "message_update");
    void t.first.submit("queued", { delivery: "followUp" });
    const next = t.conversations.create();
    await t.conversations.replace(next);
    expect((await work.settled).status).toBe("aborted");
    expect(t.types()).not.toContain("agent_end");
    expect([next.queue.steeringMode, next.messageUpdates, next.activeTools, next.selection.model?.id]).toEqual([
      "all",
      "delta",
      ["a"],
      "scripted",
    ]);
    expect(next.queue.count).toBe(0);
    expect(t.conversations.list()).toEqual([next]);
    await t.conversations.closeAll();
  });

  it("opens a file once, whatever it is called by, and refuses to close the attached one", async () => {
    const t = table(says("x"), says("y"));
    await t.first.submit("one").settled;
    const file = t.first.log.file ?? "";
    await symlink(file, join(dir, "alias.jsonl"));
    expect(await t.conversations.open(join(dir, "alias.jsonl"))).toBe(t.first);
    await expect(t.conversations.close(t.first)).rejects.toThrow("attached conversation");
    const next = t.conversations.create();
    await t.conversations.replace(next);
    const [again, same] = await Promise.all([t.conversations.open(file), t.conversations.open(join(dir, "alias.jsonl"))]);
    expect(again.messages.map(textOf)).toEqual(["one", "x"]);
    expect(same).toBe(again);
    await t.conversations.closeAll();
    expect(existsSync(next.log.file ?? "none")).toBe(false);
  });

  it("lets go of a file whose conversation could not be made", async () => {
    const t = table(says("x"));
    await t.first.submit("one").settled;
    const file = t.first.log.file ?? "";
    t.conversations.attach(t.conversations.create());
    await t.conversations.close(t.first);
    const stop = t.conversations.onChange(({ type }) => {
      if (type === "created") throw new Error("not this one");
    });
    await expect(t.conversations.open(file)).rejects.toThrow("not this one");
    expect(t.conversations.byFile(file)).toBeUndefined();
    stop();
    expect((await t.conversations.open(file)).messages.map(textOf)).toEqual(["one", "x"]);
    await t.conversations.closeAll();
  });

  it("never attaches a subagent, and gives handlers a moment at the end", async () => {
    const t = table(says("sub"));
    const closing: string[] = [];
    t.daemon.add(
      "watch",
      "user",
      defineHook(sessionClosing, ({ conversation, reason }) => void closing.push(`${conversation.id === sub.id} ${reason}`)),
    );
    const sub = t.conversations.create({
      parent: t.first,
      file: join(dir, "sub.jsonl"),
      activeTools: [],
      systemPrompt: ["You are a subagent."],
    });
    expect(sub.isSubagent).toBe(true);
    expect(() => t.conversations.attach(sub)).toThrow("cannot be attached");
    await sub.submit("task").settled;
    expect(t.provider.requests[0]).toMatchObject({ systemPrompt: ["You are a subagent."], tools: [] });
    expect(t.frames).toEqual([]);
    expect(existsSync(join(dir, "sub.jsonl"))).toBe(true);
    await t.conversations.close(sub);
    expect(closing).toEqual(["true closed"]);
    await t.conversations.closeAll();
  });

  it("warns of no leak when many calls listen to one run", async () => {
    const warnings: Error[] = [];
    const onWarning = (warning: Error) => void warnings.push(warning);
    process.on("warning", onWarning);
    const t = table(calls(...Array.from({ length: 30 }, (_, n) => ({ id: `c${n}`, name: "t" }))), says("End"));
    t.daemon.add(
      "tools",
      "user",
      defineTool({
        name: "t",
        description: "",
        params: z.object({}),
        run: () => new Promise((resolve) => setImmediate(() => resolve("ok"))),
      }),
    );
    await t.first.submit("Go").settled;
    await new Promise((resolve) => setImmediate(resolve));
    process.off("warning", onWarning);
    expect(warnings).toEqual([]);
    expect(t.ends("toolResult")).toHaveLength(30);
    await t.conversations.closeAll();
  });
});
