// Regressions 56 to 58 of agent-semantics §12 on the built daemon: limits on every path that starts subagents, aborts at the start,
// and nested subagents that the host sees.
import { randomInt } from "node:crypto";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { FakeReply } from "../support/fake-provider.ts";
import { type DaemonProcess, processesWith } from "../support/process.ts";
import { bash, bodyOf, callsOf, lives, spawns, startPlay, type Turn, taskResults } from "./_subagents.ts";
import { ask, eventually, prompt, SOAK, sleep, textOf, useProcesses, wait } from "./_support.ts";

const use = useProcesses();
const patience = { timeout: 120_000 };
const done: FakeReply = { text: "done" };
const isLeaf = (told: string) => told.startsWith("leaf");
const limit = (count: number) => ({ "config.yml": `agent:\n  maxConcurrency: ${count}\nasync: {enabled: true}\n` });
/** An agent that is not waited for: its call goes on as a job. */
const slowAgent = { "agents/slow.md": "---\nname: slow\ndescription: Slow\nblocking: false\n---\nTake your time" };

/** Counts answers that are being given at once. */
class Meter {
  active = 0;
  peak = 0;
  readonly seen: string[] = [];

  /** The reply, counted from now until the connection is over. */
  count({ told, request }: Turn, reply: FakeReply): FakeReply {
    this.seen.push(told);
    this.peak = Math.max(this.peak, ++this.active);
    void request.closed.then(() => this.active--);
    return reply;
  }
}

const slowly = (text: string): FakeReply => ({ text, chunk: 1, delayMs: 15 });

describe("item 56: agent.maxConcurrency", () => {
  it("holds over batches, single calls, nested ones and jobs together; each has one result", patience, async () => {
    const meter = new Meter();
    const play = (turn: Turn): FakeReply => {
      const { told } = turn;
      if (isLeaf(told)) return meter.count(turn, slowly(`answer ${told}`));
      if (told.startsWith("mid")) return turn.turn === 0 ? spawns({ task: `leaf-${told}-1` }, { task: `leaf-${told}-2` }) : done;
      if (turn.turn > 0) return done;
      return callsOf(
        { name: "task", arguments: { tasks: [{ task: "leaf-1" }, { task: "leaf-2" }, { task: "mid-1" }] } },
        { name: "task", arguments: { task: "leaf-3" } },
        { name: "task", arguments: { tasks: [{ task: "leaf-4", agent: "slow" }] } },
        { name: "task", arguments: { tasks: [{ task: "mid-2" }] } },
      );
    };
    const { daemon } = await startPlay(use, play, { files: { ...limit(2), ...slowAgent } });
    await prompt(daemon, "Go");
    await eventually("all are over", () => [...lives(daemon).values()].filter((each) => each === "completed").length === 10);
    expect(meter.peak).toBeLessThanOrEqual(2);
    expect(meter.seen.toSorted()).toEqual(
      ["leaf-1", "leaf-2", "leaf-3", "leaf-4", "leaf-mid-1-1", "leaf-mid-1-2", "leaf-mid-2-1", "leaf-mid-2-2"].toSorted(),
    );
    const results = taskResults(daemon);
    expect(results).toHaveLength(4);
    expect(results.flatMap(({ details }) => details.results.map(({ exitCode }) => exitCode))).toEqual([0, 0, 0, 0, 0]);
    const isDelivery = (frame: { type: string }) =>
      frame.type === "message_end" && /async-result.*answer leaf-4/.test(JSON.stringify(frame));
    await eventually("the job's result is there", () => daemon.frames.some(isDelivery));
    await ask(daemon, "get_state");
    expect(daemon.frames.filter(isDelivery)).toHaveLength(1);
  });

  it("keeps its places when queued ones are cancelled", patience, async () => {
    const meter = new Meter();
    let release: () => void = () => {};
    const first = new Promise<void>((resolve) => {
      release = resolve;
    });
    const play = (turn: Turn): FakeReply => {
      if (turn.told === "leaf-first") return meter.count(turn, { text: "first", hold: first });
      if (isLeaf(turn.told)) return meter.count(turn, { text: `answer ${turn.told}` });
      const asked = textOf(bodyOf(turn.request).messages.findLast(({ role }) => role === "user"));
      if (bodyOf(turn.request).messages.at(-1)?.role === "tool") return done;
      if (asked === "Start") return callsOf({ name: "task", arguments: { task: "leaf-first", agent: "slow" } });
      if (asked === "Queue") return callsOf({ name: "task", arguments: { task: "leaf-queued", agent: "slow" } });
      if (asked === "Cancel") return callsOf({ name: "job", arguments: { op: "cancel", ids: ["job-2"] } });
      return asked === "Last" ? spawns({ task: "leaf-last" }) : done;
    };
    const { daemon } = await startPlay(use, play, { files: { ...limit(1), ...slowAgent } });
    await prompt(daemon, "Start");
    await eventually("the first runs", () => meter.active === 1);
    await prompt(daemon, "Queue");
    await prompt(daemon, "Cancel");
    expect(meter.seen).toEqual(["leaf-first"]);
    const from = daemon.frames.length;
    daemon.send({ id: "last", type: "prompt", message: "Last" });
    await wait(daemon, "tool_execution_start", from);
    await sleep(300);
    expect(meter.seen).toEqual(["leaf-first"]);
    release();
    await eventually("the last one has its answer", () => taskResults(daemon).at(-1)?.details.results[0]?.exitCode === 0);
    expect(meter.seen).toEqual(["leaf-first", "leaf-last"]);
    expect(meter.peak).toBe(1);
  });

  it("does not wait for ever at a service that gives one answer at a time", patience, async () => {
    let before: Promise<unknown> = Promise.resolve();
    const play = async ({ told, turn, request }: Turn): Promise<FakeReply> => {
      const mine = before;
      before = mine.then(() => request.closed);
      await mine;
      if (told === "Go") return turn === 0 ? spawns({ task: "mid-1" }, { task: "mid-2" }) : done;
      if (told.startsWith("mid")) return turn === 0 ? spawns({ task: `leaf-${told}` }) : { text: `sum ${told}` };
      return { text: `answer ${told}` };
    };
    const { daemon } = await startPlay(use, play, { files: limit(1) });
    await prompt(daemon, "Go");
    const [result] = taskResults(daemon);
    expect(result?.details.results.map(({ output }) => output)).toEqual(["sum mid-1", "sum mid-2"]);
  });

  it.each([
    [0, []],
    [1, ["Task"]],
    [2, ["Task", "Task.Task"]],
  ])("agent.maxNestedSpawnDepth %i holds, also for a model that calls the tool all the same", patience, async (depth, ids) => {
    const refusals: string[] = [];
    const play = ({ turn, request }: Turn): FakeReply => {
      if (turn === 0) return spawns({ task: "deeper" });
      const { messages, tools = [] } = bodyOf(request) as ReturnType<typeof bodyOf> & {
        tools?: { function: { name: string } }[];
      };
      if (!tools.some((tool) => tool.function.name === "task")) refusals.push(textOf(messages.at(-1)));
      return done;
    };
    const { daemon } = await startPlay(use, play, { files: { "config.yml": `agent:\n  maxNestedSpawnDepth: ${depth}\n` } });
    await prompt(daemon, "Go");
    expect([...lives(daemon).keys()]).toEqual(ids);
    expect(refusals).toEqual([expect.stringMatching(/task.*not found|no tool|unknown tool/i)]);
  });
});

/** Locks below the sessions, of conversations that are open. */
const locks = (daemon: DaemonProcess) =>
  readdirSync(join(daemon.home, "sessions"), { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".lock"));

describe("item 57: an abort at the start", () => {
  it("leaves no session open and no process, and every one that was started has an end", patience, async () => {
    const mark = String(randomInt(1e8));
    const play = ({ told, turn, request }: Turn): FakeReply => {
      const asked = bodyOf(request).messages.at(-1)?.role === "user";
      if (told.startsWith("Go")) return asked ? spawns({ task: "a" }, { task: "b" }, { task: "c" }) : done;
      if (told === "c" && turn === 0) return spawns({ task: "d" });
      return bash(`sleep 91.${mark}`);
    };
    const { daemon } = await startPlay(use, play);
    for (let round = 0; round < (SOAK ? 60 : 8); round++) {
      const from = daemon.frames.length;
      daemon.send({ id: `p${round}`, type: "prompt", message: `Go ${round}` });
      // Sooner and later after the first one has begun.
      await wait(daemon, (frame) => frame.type === "subagent_lifecycle", from);
      if (round % 4 > 0) await sleep((round % 4) * 25);
      await ask(daemon, "abort");
      await eventually("all have ended", () => ![...lives(daemon).values()].includes("started"), 10_000);
      const frames = daemon.frames.slice(from).filter((frame) => frame.type === "subagent_lifecycle");
      const of = (status: string) => frames.filter((frame) => frame["status"] === status).map((frame) => frame["id"]);
      expect(of("aborted").toSorted()).toEqual(of("started").toSorted());
      expect(await ask(daemon, "get_subagents")).toEqual({ subagents: [] });
    }
    await eventually("no command is left", () => processesWith(`sleep 91.${mark}`).length === 0, 10_000);
    await eventually("one session is open", () => locks(daemon).length === 1, 10_000);
    expect(await daemon.end()).toBe(0);
    expect(locks(daemon)).toEqual([]);
  });
});

describe("item 58: nested subagents", () => {
  it("are in get_subagents, and in all three frames", patience, async () => {
    const inner: FakeReply = { text: ["inner ", "works"], hold: new Promise(() => {}), holdAfter: 2 };
    const play = ({ told, turn }: Turn): FakeReply => {
      if (told === "inner") return inner;
      return turn === 0 ? spawns({ task: told === "Go" ? "outer" : "inner" }) : done;
    };
    const { daemon } = await startPlay(use, play);
    daemon.send({ id: "p", type: "prompt", message: "Go" });
    const isUpdate = (frame: { [field: string]: unknown }) => (frame["event"] as { type?: string })?.type === "message_update";
    await wait(daemon, (frame) => frame.type === "subagent_event" && frame["id"] === "Task.Task" && isUpdate(frame));
    const { subagents } = (await ask(daemon, "get_subagents")) as { subagents: Record<string, unknown>[] };
    expect(subagents).toMatchObject([
      { id: "Task", status: "running", task: "outer" },
      { id: "Task.Task", status: "running", task: "inner" },
    ]);
    const progress = await wait(
      daemon,
      (frame) => frame.type === "subagent_progress" && (frame["progress"] as { id: string }).id === "Task.Task",
      0,
    );
    expect(progress).toMatchObject({ agent: "task", agentSource: "bundled", task: "inner" });
    const { messages } = (await ask(daemon, "get_subagent_messages", { agentId: "Task.Task" })) as { messages: unknown[] };
    expect(messages).toHaveLength(1);
    await ask(daemon, "abort");
    await eventually("both ended", () => [...lives(daemon).values()].every((each) => each === "aborted"), 10_000);
    const life = daemon.frames.filter((frame) => frame.type === "subagent_lifecycle" && frame["id"] === "Task.Task");
    expect(life.map((frame) => frame["status"])).toEqual(["started", "aborted"]);
    expect(life[0]?.["sessionFile"]).toMatch(/\/Task\/Task\.Task\.jsonl$/);
  });
});
