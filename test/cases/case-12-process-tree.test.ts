// public-bugs 12, agent-semantics 12.52: abort and time-out end the whole tree of their own run, and nothing else.
import { execFileSync } from "node:child_process";
import { randomInt } from "node:crypto";
import { chmodSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { patience, type Rig, say, useRigs } from "../builtin-tools/_built.ts";
import { processesWith } from "../support/process.ts";
import { ask, eventually, ofId, textOf, wait } from "./_support.ts";

const { open } = useRigs();

async function openWithTree(mode: "rpc" | "rpc-ui") {
  const mark = String(randomInt(1e8));
  const script = `#!/bin/bash
echo started
sleep 801.${mark} &
bash -c 'trap "" TERM INT HUP; sleep 802.${mark}; sleep 802.${mark}' &
setsid sleep 803.${mark} &
wait
`;
  const rig = await open({ mode, files: { "cwd/tree.sh": script } });
  chmodSync(`${rig.daemon.cwd}/tree.sh`, 0o755);
  const living = () => processesWith(`.${mark}`);
  const naps = () => living().filter((line) => /^\d+ sleep /.test(line));
  return { rig, living, grown: () => eventually("the tree stands", () => naps().length === 3, 20_000) };
}

function zombiesOf(rig: Rig): string[] {
  const listed = execFileSync("ps", ["-Ao", "ppid=,pid=,stat=,args="], { encoding: "utf8" }).split("\n");
  return listed.filter((line) => new RegExp(`^\\s*${rig.daemon.child.pid}\\s+\\d+\\s+Z`).test(line));
}

async function leavesNothing(rig: Rig, living: () => string[]): Promise<void> {
  await eventually("the tree has ended", () => living().length === 0, 10_000);
  await eventually("no zombie stays", () => zombiesOf(rig).length === 0, 5000);
}

describe.each(["rpc", "rpc-ui"] as const)("With %s", (mode) => {
  it("abort_bash ends the tree of the bash command (case 12 A)", patience, async () => {
    const { rig, living, grown } = await openWithTree(mode);
    const { daemon } = rig;
    daemon.send({ id: "b1", type: "bash", command: "./tree.sh" });
    await grown();
    const sent = performance.now();
    const lines = [
      { id: "g", type: "get_state" },
      { id: "k1", type: "abort_bash" },
      { id: "k2", type: "abort_bash" },
    ];
    daemon.send(Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join("")));
    daemon.send({ id: "b2", type: "bash", command: "echo ok" });
    await wait(daemon, (frame) => frame["id"] === "g", 0);
    expect(performance.now() - sent).toBeLessThan(2000);
    await wait(daemon, (frame) => frame["id"] === "k2", 0);
    expect([...ofId(daemon, "k1"), ...ofId(daemon, "k2")]).toMatchObject([{ success: true }, { success: true }]);
    const b1 = await wait(daemon, (frame) => frame["id"] === "b1", 0);
    expect(performance.now() - sent).toBeLessThan(6000);
    expect(b1).toMatchObject({ success: true, data: { cancelled: true, output: "[Command cancelled]\nstarted\n" } });
    expect(await wait(daemon, (frame) => frame["id"] === "b2", 0)).toMatchObject({ data: { output: "ok\n", exitCode: 0 } });
    await leavesNothing(rig, living);
  });

  it("abort ends the tree of a tool call and keeps its output (case 12 B)", patience, async () => {
    const { rig, living, grown } = await openWithTree(mode);
    const { daemon } = rig;
    const after = rig.begin(["bash", { command: "./tree.sh" }]);
    await grown();
    daemon.send(Buffer.from('{"id":"a1","type":"abort"}\n{"id":"a2","type":"abort"}\n'));
    await wait(daemon, "agent_end", after);
    await wait(daemon, (frame) => frame["id"] === "a2", after);
    expect(rig.results(after)).toMatchObject([
      { isError: true, text: "started\n\n[Command aborted]", details: { cancelled: true } },
    ]);
    // The answer after the aborted call was never asked for.
    rig.fake.script();
    const frames = await say(rig, "next");
    expect(frames.filter((frame) => frame.type === "agent_end")).toHaveLength(1);
    expect(daemon.frames.slice(after).filter((frame) => frame.type === "agent_end")).toHaveLength(2);
    const { messages } = (await ask(daemon, "get_messages")) as { messages: { role: string }[] };
    const results = messages.filter((message) => message.role === "toolResult");
    expect(results).toHaveLength(1);
    expect(textOf(results[0])).toContain("started");
    expect(rig.lastRequest()).toContain("[Command aborted]");
    await leavesNothing(rig, living);
  });

  it("the time limit ends the tree and keeps the output (case 12 C)", patience, async () => {
    const { rig, living } = await openWithTree(mode);
    const result = await rig.call("bash", { command: "./tree.sh", timeout: 2 });
    expect(result).toMatchObject({ isError: true, details: { timedOut: true, timeoutSeconds: 2 } });
    expect(result.text).toMatch(/^started\n\n\[Command timed out after 2 seconds/);
    await leavesNothing(rig, living);
  });
});

it("ending one command leaves the children of another alone (item 52)", patience, async () => {
  const rig = await open();
  const { daemon } = rig;
  const mark = String(randomInt(1e8));
  const after = rig.begin(["bash", { command: `sleep 61.${mark}` }], ["bash", { command: `sleep 62.${mark}`, timeout: 1 }]);
  daemon.send({ id: "kept", type: "bash", command: `sleep 63.${mark} & sleep 2.${mark}; echo survived` });
  await eventually("all run", () => ["61", "63", "2"].every((time) => processesWith(`sleep ${time}.${mark}`).length === 1));
  await eventually("the time limit has ended its own", () => processesWith(`sleep 62.${mark}`).length === 0);
  expect(processesWith(`sleep 61.${mark}`)).toHaveLength(1);
  expect(processesWith(`sleep 63.${mark}`)).toHaveLength(1);
  const survived = { exitCode: 0, output: "survived\n" };
  expect(await wait(daemon, (frame) => frame["id"] === "kept", 0)).toMatchObject({ data: survived });
  await ask(daemon, "abort");
  await wait(daemon, "agent_end", after);
  await eventually("the aborted one is gone", () => processesWith(`sleep 61.${mark}`).length === 0);
  expect(processesWith(`sleep 63.${mark}`)).toHaveLength(1);
  expect(await daemon.end()).toBe(0);
  await eventually("nothing is left", () => processesWith(`.${mark}`).length === 0);
});
