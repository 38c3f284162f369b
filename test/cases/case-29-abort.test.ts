// public-bugs 29: an abort ends the parent and everything that works for it, on the built daemon.
import { randomInt } from "node:crypto";
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { FakeReply } from "../support/fake-provider.ts";
import { type DaemonProcess, processesWith } from "../support/process.ts";
import { bash, bodyOf, callsOf, lives, spawns, startPlay, type Turn, taskResults } from "./_subagents.ts";
import { ask, eventually, prompt, sessionFiles, sessionLines, sleep, textOf, useProcesses, wait } from "./_support.ts";

const use = useProcesses();
const patience = { timeout: 60_000 };
/** Three seconds by the case; a machine with other work gets more. */
const END_LIMIT_MS = 6_000;
const held = (text: string): FakeReply => ({ text: [text, "never"], hold: new Promise(() => {}), holdAfter: 2 });

function newMark(): string {
  const mark = String(randomInt(1e8));
  use.later(() => {
    for (const line of processesWith(`.${mark}`)) process.kill(Number.parseInt(line, 10), "SIGKILL");
  });
  return mark;
}
const sleepers = (mark: string) => processesWith(`sleep 90.${mark}`).length;
const statuses = (daemon: DaemonProcess) => [...lives(daemon).values()];

/** The conversations of the case: three children at work, the third one waits for a grandchild; a fourth ends early. */
const family =
  (mark: string) =>
  ({ told, turn }: Turn): FakeReply => {
    if (told === "again") return { text: "all quiet" };
    if (told === "Go")
      return turn === 0 ? spawns({ task: "a" }, { task: "b" }, { task: "c" }, { task: "quick" }) : { text: "done" };
    if (told === "quick") return { text: "the quick answer" };
    return told === "c" && turn === 0 ? spawns({ task: "grandchild" }) : bash(`sleep 90.${mark}`);
  };

/** All of them run. */
async function everyoneWorks(daemon: DaemonProcess, mark: string): Promise<void> {
  daemon.send({ id: "go", type: "prompt", message: "Go" });
  await eventually("three commands run", () => sleepers(mark) === 3, 30_000);
  await eventually("one has finished", () => lives(daemon).get("Task-4") === "completed", 30_000);
  expect(lives(daemon).size).toBe(5);
}

describe("case 29: abort with subagents", () => {
  it(
    "1: ends children, the grandchild, their commands and connections; one result with what was finished",
    patience,
    async () => {
      const mark = newMark();
      const { daemon, service } = await startPlay(use, family(mark));
      await everyoneWorks(daemon, mark);
      const began = performance.now();
      await ask(daemon, "abort");
      await eventually("all are aborted", () => statuses(daemon).filter((each) => each === "aborted").length === 4, END_LIMIT_MS);
      await eventually("no command is left", () => sleepers(mark) === 0, END_LIMIT_MS);
      expect(performance.now() - began).toBeLessThan(END_LIMIT_MS);
      const asked = service.requests.length;
      await Promise.all(service.requests.map(({ closed }) => closed));
      const results = taskResults(daemon);
      expect(results).toHaveLength(1);
      expect(results[0]?.text).toContain("the quick answer");
      expect(results[0]?.details.results.map(({ id, aborted, exitCode }) => [id, aborted ?? false, exitCode])).toEqual([
        ["Task", true, 1],
        ["Task-2", true, 1],
        ["Task-3", true, 1],
        ["Task-4", false, 0],
      ]);
      expect(await ask(daemon, "get_subagents")).toEqual({ subagents: [] });
      for (const agentId of ["Task", "Task-3", "Task-3.Task"]) {
        const { messages } = (await ask(daemon, "get_subagent_messages", { agentId })) as { messages: Record<string, unknown>[] };
        expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "toolResult", "assistant"]);
        expect(messages.slice(2)).toMatchObject([{ isError: true }, { stopReason: "aborted" }]);
      }
      expect(service.requests).toHaveLength(asked);
      const [end] = (await prompt(daemon, "again")).toReversed();
      expect(textOf((end?.["messages"] as unknown[] | undefined)?.at(-1))).toBe("done");
      expect(service.requests.map(({ refusal }) => refusal).filter((each) => each !== undefined)).toEqual([]);
    },
  );

  it("2: the one whose stream dies is named with the reason, beside the answer of the other", patience, async () => {
    const { daemon } = await startPlay(use, ({ told, turn }) => {
      if (told === "Go")
        return turn === 0 ? spawns({ name: "Bad", task: "bad" }, { name: "Good", task: "good" }) : { text: "done" };
      if (told === "good") return { text: "a good answer" };
      return { text: "half", streamError: { type: "invalid_request_error", message: "The stream died for good" }, cutAfter: 2 };
    });
    await prompt(daemon, "Go");
    const [result] = taskResults(daemon);
    expect(result?.text).toMatch(/Bad \(task\) has failed: .*The stream died for good/);
    expect(result?.text).toContain("## Good (task) has finished\na good answer");
    expect(result?.details.results.map(({ exitCode }) => exitCode)).toEqual([1, 0]);
    expect(lives(daemon)).toEqual(
      new Map([
        ["Bad", "failed"],
        ["Good", "completed"],
      ]),
    );
    expect(await ask(daemon, "get_subagents")).toEqual({ subagents: [] });
  });

  it("3: in one write with the prompt: no child starts", patience, async () => {
    const { daemon, service } = await startPlay(use, ({ told, turn }) =>
      told === "Go" && turn === 0 ? spawns({ task: "a" }, { task: "b" }) : { text: "done" },
    );
    const lines = [
      { id: "p", type: "prompt", message: "Go" },
      { id: "a", type: "abort" },
    ];
    daemon.send(lines.map((line) => JSON.stringify(line)).join("\n"));
    await wait(daemon, (frame) => frame["id"] === "a");
    await sleep(500);
    expect(lives(daemon).size).toBe(0);
    expect(service.requests.length).toBeLessThanOrEqual(1);
    expect(await ask(daemon, "get_state")).toMatchObject({ isStreaming: false });
  });

  it("3: while two wait for the place of the first: none of them starts", patience, async () => {
    const play = ({ told, turn }: Turn): FakeReply => {
      if (told !== "Go") return held("half of it");
      return turn === 0 ? spawns({ task: "a" }, { task: "b" }, { task: "c" }) : { text: "done" };
    };
    const { daemon, service } = await startPlay(use, play, { files: { "config.yml": "agent:\n  maxConcurrency: 1\n" } });
    daemon.send({ id: "p", type: "prompt", message: "Go" });
    await wait(
      daemon,
      (frame) => frame.type === "subagent_event" && (frame["event"] as { type: string }).type === "message_update",
    );
    const { subagents } = (await ask(daemon, "get_subagents")) as { subagents: { status: string }[] };
    expect(subagents.map(({ status }) => status)).toEqual(["running", "pending", "pending"]);
    await ask(daemon, "abort");
    await eventually("the first is aborted", () => lives(daemon).get("Task") === "aborted", END_LIMIT_MS);
    await sleep(500);
    expect([...lives(daemon)]).toEqual([["Task", "aborted"]]);
    expect(service.requests).toHaveLength(2);
    const [result] = taskResults(daemon);
    expect(result?.details.results.map(({ aborted }) => aborted)).toEqual([true, true, true]);
    expect(result?.text).toContain("half of it");
  });

  it("4: a child's dialog is cancelled towards the host", patience, async () => {
    const asks = `import { defineTool, z } from "mortise/extension";
export default defineTool({ name: "asks", description: "Asks", params: z.object({}),
  run: async (ctx) => String(await ctx.ui.confirm({ title: "Really?", message: "Yes or no" })) });\n`;
    const play = ({ told, turn }: Turn): FakeReply => {
      if (told === "Go") return turn === 0 ? spawns({ task: "a" }) : { text: "done" };
      return callsOf({ name: "asks", arguments: {} });
    };
    const { daemon } = await startPlay(use, play, { files: { "extensions/asks.ts": asks } });
    await eventually("the tool is there", () => daemon.frames.length > 0);
    daemon.send({ id: "p", type: "prompt", message: "Go" });
    const dialog = await wait(daemon, (frame) => frame["method"] === "confirm");
    await ask(daemon, "abort");
    await wait(daemon, (frame) => frame["method"] === "cancel" && frame["targetId"] === dialog["id"], 0);
    expect(daemon.frames.filter((frame) => frame["method"] === "cancel")).toHaveLength(1);
    await eventually("it is aborted", () => lives(daemon).get("Task") === "aborted", END_LIMIT_MS);
  });

  it("5: after kill -9 they are interrupted, neither running nor killed by the user", patience, async () => {
    const mark = newMark();
    const { daemon, service } = await startPlay(use, family(mark));
    await everyoneWorks(daemon, mark);
    daemon.child.kill("SIGKILL");
    expect(await daemon.exited).toBe("SIGKILL");
    await eventually("no command is left", () => sleepers(mark) === 0, 10_000);
    const [file = ""] = sessionFiles(daemon.home).filter((each) => readFileSync(each, "utf8").includes('"text":"Go"'));
    const again = use.start({ ...service.daemon, home: daemon.home, args: ["--session", file] });
    expect(await ask(again, "get_subagents")).toEqual({ subagents: [] });
    const spawned = sessionLines(file).filter(({ type }) => type === "subagent_spawn");
    const last = new Map(spawned.map((entry) => [entry["agentId"], entry]));
    expect([...last.values()].map(({ agentId, status, error }) => [agentId, status, error])).toEqual([
      ["Task", "aborted", "Interrupted: the process that ran it ended"],
      ["Task-2", "aborted", "Interrupted: the process that ran it ended"],
      ["Task-3", "aborted", "Interrupted: the process that ran it ended"],
      ["Task-4", "completed", undefined],
    ]);
    // What they had said can still be read by their ids.
    const { messages } = (await ask(again, "get_subagent_messages", { agentId: "Task-3" })) as { messages: unknown[] };
    expect(messages).toHaveLength(2);
    await prompt(again, "again");
    const sent = JSON.stringify(bodyOf(service.requests.at(-1) ?? fail()).messages);
    expect(sent).toContain("Interrupted: the tool call has no result");
    expect(sent).not.toMatch(/by (the )?user/i);
    expect(await again.end()).toBe(0);
    expect(service.requests.map(({ refusal }) => refusal).filter((each) => each !== undefined)).toEqual([]);
  });
});

function fail(): never {
  throw new Error("The service was not asked");
}
