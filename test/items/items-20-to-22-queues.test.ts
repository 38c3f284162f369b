// items 15, 20 to 23: what is queued is delivered exactly once, whenever it comes.
import { describe, expect, it } from "vitest";
import { ask, prompt, SOAK, sessionFiles, sessionLines, sleep, useProcesses, wait } from "../cases/_support.ts";

const use = useProcesses();
const COUNT = SOAK ? 500 : 60;
const SEED = Number(process.env["MORTISE_SEED"] ?? Date.now() % 1_000_000);

describe("items 20, 22", () => {
  it(`item 22: ${COUNT} steers and follow-ups around turn ends are each delivered exactly once (seed ${SEED})`, {
    timeout: COUNT * 2000,
  }, async () => {
    const service = await use.service();
    let turns = 0;
    service.otherwise(() =>
      ++turns % 3 === 0 ? { toolCalls: [{ name: "ls", arguments: {} }] } : { text: "ok ok ok", chunk: 2, delayMs: turns % 2 },
    );
    const daemon = use.start({ ...service.daemon, files: { "config.yml": "compaction:\n  enabled: false\n" } });
    await wait(daemon, "ready");
    let state = SEED;
    const random = () => {
      state = (state * 1_664_525 + 1_013_904_223) >>> 0;
      return state / 2 ** 32;
    };
    const kinds = ["steer", "follow_up", "prompt"] as const;
    const answers: Promise<unknown>[] = [];
    for (let index = 0; index < COUNT; index++) {
      const type = kinds[Math.floor(random() * kinds.length)] ?? "steer";
      const more = type === "prompt" ? { streamingBehavior: random() < 0.5 ? "steer" : "followUp" } : {};
      answers.push(ask(daemon, type, { message: `message <${index}>`, ...more }));
      // Around the end of a turn: right behind a frame that tells one, or a little later.
      if (random() < 0.5) await wait(daemon, (frame) => frame.type === "turn_end" || frame.type === "agent_end").catch(() => {});
      else await sleep(random() * 12);
    }
    await Promise.all(answers);
    await prompt(daemon, "and the last one").catch(() =>
      ask(daemon, "prompt", { message: "and the last one", streamingBehavior: "followUp" }),
    );
    for (;;) {
      const { isStreaming, queuedMessageCount } = await ask(daemon, "get_state");
      if (isStreaming === false && queuedMessageCount === 0) break;
      await sleep(20);
    }
    const users = sessionLines(sessionFiles(daemon.home)[0] ?? "")
      .map((line) => line["message"] as { role?: string } | undefined)
      .filter((message) => message?.role === "user")
      .map((message) => JSON.stringify(message));
    for (let index = 0; index < COUNT; index++) {
      expect(users.filter((text) => text.includes(`message <${index}>`)).length, `message ${index} (seed ${SEED})`).toBe(1);
    }
    expect(service.requests.filter((request) => request.refusal !== undefined)).toEqual([]);
  });

  it("item 21: what waits when the run is aborted stays queued and comes with the next turn", async () => {
    const service = await use.service();
    const daemon = use.start(service.daemon);
    await wait(daemon, "ready");
    service.script({ text: "one two", chunk: 2, hold: new Promise(() => {}), holdAfter: 3 });
    await ask(daemon, "prompt", { message: "go" });
    await wait(daemon, "message_update");
    await ask(daemon, "follow_up", { message: "waiting" });
    expect((await ask(daemon, "get_state"))["queuedMessageCount"]).toBe(1);
    service.otherwise({ text: "heard" });
    await ask(daemon, "abort");
    await wait(daemon, "agent_end");
    const between = sessionLines(sessionFiles(daemon.home)[0] ?? "");
    if ((await ask(daemon, "get_state"))["queuedMessageCount"] === 1) expect(JSON.stringify(between)).not.toContain("waiting");
    await prompt(daemon, "next");
    for (;;) {
      const { isStreaming, queuedMessageCount } = await ask(daemon, "get_state");
      if (isStreaming === false && queuedMessageCount === 0) break;
      await sleep(20);
    }
    const lines = sessionLines(sessionFiles(daemon.home)[0] ?? "");
    expect(lines.filter((line) => JSON.stringify(line).includes("waiting"))).toHaveLength(1);
    const last = lines.findLast((line) => line["type"] === "message");
    expect(last?.["message"]).toMatchObject({ role: "assistant", stopReason: "stop" });
  });

  it("item 20: a steer during a running tool leaves that tool its real result", async () => {
    const service = await use.service();
    const daemon = use.start(service.daemon);
    await wait(daemon, "ready");
    await ask(daemon, "set_interrupt_mode", { mode: "immediate" });
    service.script(
      { toolCalls: [{ name: "bash", arguments: { command: "while [ ! -e go ]; do sleep 0.02; done; echo real" } }] },
      { text: "heard" },
    );
    await ask(daemon, "prompt", { message: "go" });
    await wait(daemon, "tool_execution_start");
    await ask(daemon, "steer", { message: "and this" });
    daemon.write("cwd/go", "");
    const end = await wait(daemon, "tool_execution_end");
    expect(JSON.stringify(end)).toContain("real");
    await wait(daemon, "agent_end");
    expect(JSON.stringify(service.requests.at(-1)?.body)).toContain("and this");
    expect(service.requests.filter((request) => request.refusal !== undefined)).toEqual([]);
  });
});
