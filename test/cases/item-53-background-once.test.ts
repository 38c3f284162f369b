// agent-semantics 12.53–12.55: commands that move to the background.

import { randomInt } from "node:crypto";
import { expect, it } from "vitest";
import { patience, type Rig, useRigs } from "../builtin-tools/_built.ts";
import { ask, eventually, SOAK, wait } from "./_support.ts";

const { open } = useRigs();

const config = (thresholdMs: number, more = "") =>
  `bash:\n  autoBackground:\n    enabled: true\n    thresholdMs: ${thresholdMs}\n${more}`;

/** Everything the model was told, results and messages of jobs. */
async function told(rig: Rig): Promise<string> {
  const { messages } = (await ask(rig.daemon, "get_messages")) as { messages: unknown[] };
  return JSON.stringify(messages);
}

async function whenIdle(rig: Rig): Promise<void> {
  for (;;) {
    const state = await ask(rig.daemon, "get_state");
    if (state["isStreaming"] !== true) return;
    await wait(rig.daemon, "agent_end");
  }
}

it("a command that ends right at the threshold is delivered once (item 53)", patience, async () => {
  const rig = await open({ files: { "config.yml": config(120) } });
  rig.fake.otherwise({ text: "Noted" });
  const rounds = SOAK ? 100 : 12;
  for (let round = 0; round < rounds; round++) {
    const mark = `end-of-${round}-${randomInt(1e8)}`;
    // Around the threshold, start-up of the shell included.
    const seconds = 0.09 + (round % 7) * 0.006;
    const result = await rig.call("bash", { command: `sleep ${seconds}; printf 'end-of-%s' ${mark.slice(7)}` });
    const moved = result.details["async"] !== undefined;
    if (moved) expect(result.details["async"]).toMatchObject({ state: "running", type: "bash", reason: "threshold" });
    await eventually("its output is told", () => rig.daemon.stdout().includes(mark));
    await whenIdle(rig);
    expect((await told(rig)).split(mark).length - 1, moved ? "as a job" : "as a result").toBe(1);
  }
});
