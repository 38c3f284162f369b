// `/usage`: the tokens of the session, with those of its subagents on every level, whether a call waited for them or not.
import { afterEach, expect, it } from "vitest";
import type { TestDaemon } from "../../../core/testing.ts";
import type { Reply } from "../../support/scripted-provider.ts";
import { calls, type Play, says, spawns, start } from "../subagents/_start.ts";

let daemon: TestDaemon | undefined;
afterEach(async () => {
  await daemon?.stop();
  daemon = undefined;
});

/** The same answer, two of whose tokens were spent on reasoning. */
const thinks = (reply: Reply): Reply => [
  ...reply.slice(0, -1),
  { type: "usage", usage: { reasoningTokens: 2 } },
  ...reply.slice(-1),
];

it("sums up the conversation, its subagents, theirs, and those that went on as a job", async () => {
  const play: Play = ({ told, turn }) => {
    if (told === "Go" && turn === 0) return spawns("c1", { task: "outer" });
    if (told === "Go" && turn === 2) return spawns("c3", { task: "late", agent: "slow" });
    if (told === "outer" && turn === 0) return spawns("c2", { task: "inner" });
    if (told === "late") return thinks(turn === 0 ? calls({ id: "l", name: "ls" }) : says("done"));
    return says("done");
  };
  const slow = "---\nname: slow\ndescription: Slow\nblocking: false\n---\nTake your time";
  const { daemon: d } = await start(play, { files: { "agents/slow.md": slow } });
  daemon = d;
  const rows = async () => (await d.slash("/usage")).split("\n").map((line) => line.split(/ {2,}/));
  await d.prompt("Go");
  // Every model call uses 10 and 5: two of its own, two of the outer one, one of the inner one.
  expect(await rows()).toEqual(
    expect.arrayContaining([
      ["Answers", "2"],
      ["Input", "50 tokens"],
      ["Total", "75 tokens"],
      ["Subagents", expect.stringMatching(/^1, with 45 of the tokens and \$0\.\d+ of the cost$/)],
    ]),
  );
  const after = d.frames.length;
  await d.ask("prompt", { message: "Again" });
  await d.next((frame) => frame.type === "agent_end" && JSON.stringify(frame).includes("async-result"), { after });
  // Three more of its own, the last one for the result of the job, and two of the job's subagent.
  expect(await rows()).toEqual(
    expect.arrayContaining([
      ["Answers", "5"],
      ["Input", "100 tokens"],
      ["Output", "50 tokens, 4 of them reasoning"],
      ["Subagents", expect.stringMatching(/^2, with 75 of the tokens /)],
    ]),
  );
});
