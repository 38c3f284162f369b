// item 45, 24: kill -9 at any moment of a busy session. What was acknowledged (its message_end was seen) is there afterwards, the
// file parses, and the next prompt is accepted by a strict service.
import { appendFileSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { prompt, SOAK, sessionFiles, sleep, useProcesses, wait } from "../cases/_support.ts";
import { startFakeAnthropic } from "../support/fake-anthropic.ts";
import type { RecordedRequest } from "../support/fake-provider.ts";

const use = useProcesses();
const KILLS = SOAK ? 200 : 12;
/** Told on failure, so that the moments can be tried again. */
const SEED = Number(process.env["MORTISE_SEED"] ?? Date.now() % 1_000_000);

function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

describe("item 45", () => {
  it(`${KILLS} kills at random moments (seed ${SEED})`, { timeout: KILLS * 15_000 }, async () => {
    const next = random(SEED);
    const fake = await startFakeAnthropic();
    use.later(() => fake.close());
    let calls = 0;
    // Every second answer calls tools, so that kills fall into text, arguments, tools and their results.
    fake.otherwise((request: RecordedRequest) => {
      const last = JSON.stringify((request.body as { messages: unknown[] }).messages.at(-1));
      if (last.includes("tool_result")) return { text: `done ${++calls}`, chunk: 3, delayMs: 1 };
      return {
        text: "Looking",
        chunk: 2,
        delayMs: 1,
        toolCalls: [
          { name: "bash", arguments: { command: "echo one; sleep 0.02; echo two" }, chunk: 8 },
          { name: "ls", arguments: {} },
        ],
      };
    });
    const options = {
      model: "anthropic/claude-haiku-4-5",
      env: { ANTHROPIC_API_KEY: "k", ANTHROPIC_BASE_URL: fake.url },
    };
    const first = use.start({ ...options, files: { "config.yml": "compaction:\n  enabled: false\n" } });
    const { home } = first;
    await prompt(first, "begin");
    const [file = ""] = sessionFiles(home);
    await first.end();
    let acknowledged = wholeLines(file).length;
    for (let kill = 0; kill < KILLS; kill++) {
      const daemon = use.start({ ...options, home, args: ["--session", file] });
      await wait(daemon, (frame) => frame.type === "available_commands_update");
      // A torn line is put aside when the next daemon opens the file.
      const lines = wholeLines(file);
      expect(lines.length).toBeGreaterThanOrEqual(acknowledged);
      const began = daemon.frames.length;
      daemon.send({ id: "p", type: "prompt", message: `round ${kill}` });
      const busy = next() * 120;
      await wait(daemon, "agent_start", began);
      await sleep(busy);
      daemon.child.kill("SIGKILL");
      await daemon.exited;
      const ended = daemon.frames.slice(began).filter((frame) => frame.type === "message_end");
      const stored = storedMessages(file);
      for (const frame of ended)
        expect(stored, `${JSON.stringify(frame)} (seed ${SEED}, kill ${kill})`).toContain(JSON.stringify(frame["message"]));
      acknowledged = lines.length + ended.length;
      // As a power cut in the middle of a write would leave it, now and then.
      if (next() < 0.2) appendFileSync(file, '{"type":"message","id":"torn');
    }
    const last = use.start({ ...options, home, args: ["--session", file] });
    const frames = await prompt(last, "at last");
    expect(JSON.stringify(frames.at(-1))).toContain("done");
    await last.end();
    expect(fake.requests.filter((request) => request.refusal !== undefined)).toEqual([]);
    expect(readFileSync(file, "utf8").endsWith("\n")).toBe(true);
  });
});

function storedMessages(file: string): string[] {
  return wholeLines(file).flatMap((line) => (line["type"] === "message" ? [JSON.stringify(line["message"])] : []));
}

/** Every line that is one; the last may be half, because the process died in it, and so may one that was fenced since. */
function wholeLines(file: string): Record<string, unknown>[] {
  const lines = readFileSync(file, "utf8").split("\n").slice(0, -1);
  return lines.flatMap((line) => {
    try {
      return [JSON.parse(line) as Record<string, unknown>];
    } catch {
      // Half a line of an earlier death.
      return [];
    }
  });
}
