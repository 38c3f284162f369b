// Case 29: `abort` stops the parent and everything that works for it.
import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { defineTool, z } from "../../../core/extension.ts";
import { startDaemon, type TestDaemon } from "../../../core/testing.ts";
import type { Frame } from "../../../protocol/frame.ts";
import { done, Gate } from "../../support/scripted-provider.ts";
import { calls, noneLeft, type Play, says, spawns, start, taskResults } from "./_start.ts";

const execute = promisify(execFile);

const isLife = (status: string) => (frame: Frame) => frame.type === "subagent_lifecycle" && frame["status"] === status;
/** Processes of the mark; asked without holding the daemon's own event loop up. */
const sleeping = async (mark: string) =>
  execute("pgrep", ["-f", `^sleep ${mark}`]).then(
    ({ stdout }) => stdout.trim().split("\n").length,
    () => 0,
  );

async function until(holds: () => boolean | Promise<boolean>, limitMs: number): Promise<void> {
  const end = performance.now() + limitMs;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`It did not hold within ${limitMs} ms: ${holds.toString()}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** The number of lifecycle frames so far. */
const count = (d: TestDaemon, status: string) => d.frames.filter(isLife(status)).length;

describe("case 29: abort with subagents", () => {
  it("1: ends children, the grandchild and their processes; one result with what was finished", async () => {
    const mark = `90.${process.pid}`;
    const sleep = (id: string) => calls({ id, name: "bash", args: { command: `sleep ${mark}` } });
    const play: Play = ({ told, turn }) => {
      if (told === "Go")
        return turn === 0 ? spawns("c1", { task: "a" }, { task: "b" }, { task: "c" }, { task: "quick" }) : says("done");
      if (told === "quick") return says("the quick answer");
      return told === "c" && turn === 0 ? spawns("c2", { task: "grandchild" }) : sleep(`s-${told}`);
    };
    const { daemon: d, provider } = await start(play);
    await d.ask("set_subagent_subscription", { level: "events" });
    const run = d.prompt("Go");
    await until(async () => count(d, "completed") === 1 && (await sleeping(mark)) === 3, 10_000);
    expect(count(d, "started")).toBe(5);
    const began = performance.now();
    await d.ask("abort");
    const frames = await run;
    await until(async () => count(d, "aborted") === 4 && (await sleeping(mark)) === 0, 3000 - (performance.now() - began));
    const results = taskResults(frames);
    expect(results).toHaveLength(1);
    expect(results[0]?.isError).toBe(true);
    expect(results[0]?.text).toContain("the quick answer");
    expect(results[0]?.details.results.map(({ id, aborted, exitCode }) => [id, aborted ?? false, exitCode])).toEqual([
      ["Task", true, 1],
      ["Task-2", true, 1],
      ["Task-3", true, 1],
      ["Task-4", false, 0],
    ]);
    expect((await d.ask("get_subagents"))["subagents"]).toEqual([]);
    const asked = provider.requests.length;
    await noneLeft(d);
    expect(provider.requests).toHaveLength(asked);
    const messages = (await d.ask("get_subagent_messages", { agentId: "Task" }))["messages"] as Record<string, unknown>[];
    expect(messages.at(-1)).toMatchObject({ role: "assistant", stopReason: "aborted" });
    expect(JSON.stringify(await d.prompt("again"))).toContain('"done"');
    expect(provider.refused).toEqual([]);
  });

  it("3: starts no child after the abort was accepted, sent with the prompt in one write or while two are queued", async () => {
    const play: Play = ({ told, turn }) => {
      if (told === "again" || turn > 0) return says("done");
      if (told === "Go") return spawns("c1", { task: "a" }, { task: "b" }, { task: "c" });
      return [{ type: "text_start", index: 0 }, { type: "text_delta", index: 0, delta: "half of it" }, new Gate(), done()];
    };
    const { daemon: d, provider } = await start(play, { files: { "config.yml": "agent:\n  maxConcurrency: 1\n" } });
    await d.ask("set_subagent_subscription", { level: "events" });
    d.send({ id: "p", type: "prompt", message: "Go" });
    d.send({ id: "a", type: "abort" });
    await d.next((frame) => frame["id"] === "a", { after: 0 });
    await d.daemon.conversations.attached.whenIdle();
    expect(count(d, "started")).toBe(0);
    const run = d.prompt("Go");
    await d.next((frame) => frame.type === "subagent_event" && (frame["event"] as Frame).type === "message_update");
    const waiting = (await d.ask("get_subagents"))["subagents"] as { status: string }[];
    expect(waiting.map(({ status }) => status)).toEqual(["running", "pending", "pending"]);
    await d.ask("abort");
    const [result] = taskResults(await run);
    expect(result?.details.results.map(({ aborted }) => aborted)).toEqual([true, true, true]);
    expect(result?.text).toContain("half of it");
    await noneLeft(d);
    expect([count(d, "started"), count(d, "aborted")]).toEqual([1, 1]);
    expect(provider.requests.filter((request) => JSON.stringify(request.messages).includes('"b"'))).toEqual([]);
  });

  it("4: cancels a child's dialog towards the host", async () => {
    const asks = defineTool({
      name: "asks",
      description: "Asks",
      params: z.object({}),
      run: async (ctx) => String(await ctx.ui.confirm({ title: "Really?", message: "Yes or no" })),
    });
    const play: Play = ({ told, turn }) => {
      if (told === "Go") return turn === 0 ? spawns("c1", { task: "a" }) : says("done");
      return calls({ id: `q${turn}`, name: "asks" });
    };
    const { daemon: d } = await start(play, { tools: [asks] });
    const run = d.prompt("Go");
    const dialog = await d.next((frame) => frame["method"] === "confirm");
    await d.ask("abort");
    await d.next((frame) => frame["method"] === "cancel" && frame["targetId"] === dialog["id"], { after: 0, timeoutMs: 3000 });
    await run;
    await noneLeft(d);
    expect(d.daemon.kernel.requests.size).toBe(0);
    expect(d.frames.filter((frame) => frame["method"] === "notify")).toEqual([]);
  });

  it("5: after a kill the children are neither running nor killed by the user", async () => {
    const gate = new Gate();
    const play: Play = ({ told, turn }) => {
      if (told === "Go" && turn === 0) return spawns("c1", { task: "a" });
      return [{ type: "text_start", index: 0 }, { type: "text_delta", index: 0, delta: "…" }, gate, done()];
    };
    const { daemon: d } = await start(play);
    await d.ask("set_subagent_subscription", { level: "events" });
    const run = d.prompt("Go");
    await d.next((frame) => frame.type === "subagent_event" && (frame["event"] as Frame).type === "message_update");
    const file = String((await d.ask("get_state"))["sessionFile"]);
    // What a kill would leave on the disk at this moment.
    const home = realpathSync(mkdtempSync(join(tmpdir(), "mortise-killed-")));
    try {
      cpSync(join(d.home, "sessions"), join(home, "sessions"), { recursive: true, filter: (path) => !path.endsWith(".lock") });
      gate.open();
      await run;
      const after = await startDaemon({ home, options: { session: join(home, file.slice(d.home.length)) } });
      try {
        expect((await after.ask("get_subagents"))["subagents"]).toEqual([]);
        const { messages } = (await after.ask("get_messages")) as { messages: Record<string, unknown>[] };
        const text = JSON.stringify(messages);
        expect(text).not.toContain("by user");
        expect(readdirSync(file.replace(/\.jsonl$/, ""))).toContain("Task.jsonl");
      } finally {
        await after.stop();
      }
    } finally {
      rmSync(home, { recursive: true, force: true });
    }
  });

  it("ends them with the session: nothing of the old one is sent, no conversation is left", async () => {
    const play: Play = ({ told, turn }) => {
      if (told === "Go") return turn === 0 ? spawns("c1", { task: "a" }, { task: "b" }) : says("done");
      return [{ type: "text_start", index: 0 }, { type: "text_delta", index: 0, delta: "…" }, new Gate(), done()];
    };
    const { daemon: d } = await start(play);
    await d.ask("set_subagent_subscription", { level: "events" });
    await d.ask("prompt", { message: "Go" });
    await until(() => count(d, "started") === 2, 5000);
    await d.ask("new_session");
    const from = d.frames.findLastIndex((frame) => frame.type === "response");
    await noneLeft(d);
    expect(d.frames.slice(from).filter(({ type }) => type.startsWith("subagent_"))).toEqual([]);
    expect(d.daemon.conversations.list()).toHaveLength(1);
  });
});
