// agent-semantics 12.54: at the limit of jobs commands run as if there were no jobs.
import { randomInt } from "node:crypto";
import { expect, it } from "vitest";
import { patience, useRigs } from "../builtin-tools/_built.ts";
import { processesWith } from "../support/process.ts";
import { bodyOf, callsOf, startPlay, type Turn, taskResults } from "./_subagents.ts";
import { ask, eventually, prompt, textOf, useProcesses, wait } from "./_support.ts";

const { open } = useRigs();
const use = useProcesses();

it("at the job cap ordinary commands still work, and one that was asked for is an error (item 54)", patience, async () => {
  const files = { "config.yml": "bash:\n  autoBackground:\n    enabled: true\n    thresholdMs: 100\nasync:\n  maxJobs: 1\n" };
  const rig = await open({ files });
  rig.fake.otherwise({ text: "Noted" });
  const mark = randomInt(1e8);
  const first = await rig.call("bash", { command: `sleep 64.${mark}`, async: true });
  expect(first.details["async"]).toEqual({ state: "running", jobId: "job-1", type: "bash", reason: "requested" });
  const second = await rig.call("bash", { command: "sleep 0.6; echo in the foreground" });
  expect(second).toMatchObject({ isError: false, text: "in the foreground" });
  expect(second.details).not.toHaveProperty("async");
  const third = await rig.call("bash", { command: "touch must-not-run", async: true });
  expect(third).toMatchObject({ isError: true, text: expect.stringContaining("the limit is 1 (async.maxJobs)") });
  expect(await rig.call("bash", { command: "ls" })).toMatchObject({ text: "(no output)" });
  expect(await rig.call("job", { op: "cancel", ids: ["job-1"] })).toMatchObject({ isError: false });
  await eventually("the job has ended", () => processesWith(`sleep 64.${mark}`).length === 0);
  expect((await rig.call("bash", { command: "sleep 0.6; echo behind" })).details["async"]).toMatchObject({ jobId: "job-2" });
  await eventually("its result comes", () => rig.daemon.stdout().includes("behind"));
});

it("abort ends a command in the background, and the daemon leaves none (item 54)", patience, async () => {
  const rig = await open();
  const mark = randomInt(1e8);
  await rig.call("bash", { command: `sleep 65.${mark}`, async: true });
  await ask(rig.daemon, "abort");
  await eventually("abort ends it", () => processesWith(`sleep 65.${mark}`).length === 0);
  await rig.call("bash", { command: `sleep 66.${mark}`, async: true });
  await eventually("it runs", () => processesWith(`sleep 66.${mark}`).length > 0);
  expect(await rig.daemon.end()).toBe(0);
  await eventually("the end ends it", () => processesWith(`sleep 66.${mark}`).length === 0);
});

it("jobs can be switched off (item 54)", patience, async () => {
  const files = { "config.yml": "bash:\n  autoBackground:\n    enabled: true\n    thresholdMs: 50\nasync:\n  enabled: false\n" };
  const rig = await open({ files });
  expect(await rig.call("bash", { command: "sleep 0.3; echo whole" })).toMatchObject({ isError: false, text: "whole" });
  expect(await rig.call("bash", { command: "true", async: true })).toMatchObject({ isError: true });
  await wait(rig.daemon, "agent_end", 0);
});

it(
  "tasks that wait for their turn do not count toward the cap; at the cap a task is waited for (item 54)",
  patience,
  async () => {
    let release: () => void = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const mark = randomInt(1e8);
    const slow = (task: string) => callsOf({ name: "task", arguments: { task, agent: "slow" } });
    const play = ({ told, request }: Turn) => {
      if (told === "leaf-first") return { text: "first is done", hold: held };
      if (told.startsWith("leaf")) return { text: `${told} is done` };
      const { messages } = bodyOf(request);
      if (messages.at(-1)?.role === "tool") return { text: "Fine" };
      const asked = textOf(messages.findLast(({ role }) => role === "user"));
      if (asked.startsWith("Do ")) return slow(asked.slice(3));
      return asked === "Command"
        ? callsOf({ name: "bash", arguments: { command: `sleep 67.${mark}`, async: true } })
        : { text: "Fine" };
    };
    const files = {
      "config.yml": "agent:\n  maxConcurrency: 1\nasync:\n  enabled: true\n  maxJobs: 2\n",
      "agents/slow.md": "---\nname: slow\ndescription: Slow\nblocking: false\n---\nTake your time",
    };
    const { daemon } = await startPlay(use, play, { files });
    const jobs = () => taskResults(daemon).map(({ details }) => (details as { async?: { jobId: string } }).async?.jobId);
    const commands = () => daemon.frames.filter((frame) => frame.type === "tool_execution_end" && frame["toolName"] === "bash");
    await prompt(daemon, "Do leaf-first");
    // Both wait behind the first one: three jobs, of which one runs.
    await prompt(daemon, "Do leaf-second");
    await prompt(daemon, "Do leaf-third");
    expect(jobs()).toEqual(["job-1", "job-2", "job-3"]);
    await prompt(daemon, "Command");
    expect(commands()).toMatchObject([{ isError: false, result: { details: { async: { jobId: "job-4" } } } }]);
    // Now two run.
    await prompt(daemon, "Command");
    expect(commands()[1]).toMatchObject({ isError: true });
    const after = daemon.frames.length;
    daemon.send({ id: "waited", type: "prompt", message: "Do leaf-fourth" });
    await wait(daemon, "tool_execution_start", after);
    release();
    await eventually("the fourth was waited for", () => taskResults(daemon)[3]?.text.includes("leaf-fourth is done"));
    expect(jobs()[3]).toBeUndefined();
  },
);
