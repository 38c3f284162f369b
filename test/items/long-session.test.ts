// DESIGN §7: a session of 20,000 entries is opened and goes on without holding the event loop, whether its context fits the model's
// window or has to be compacted first. The aims are measured by test/bench/session.ts; this catches a wrong order of magnitude.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { startDaemon, type TestDaemon } from "../../core/testing.ts";
import { sessionText } from "../bench/session.ts";
import { watchLoop } from "../support/held.ts";
import { says, scriptedModel, scriptedProvider } from "../support/scripted-provider.ts";

let daemon: TestDaemon;
afterEach(() => daemon.stop());

/** CPU milliseconds: twice what it takes, half of what it takes in one go. */
const OPENING = 60;

it.each([
  // The provider of this test looks at all that it is sent, in this very loop.
  ["all of it fits", 20_000_000, 200],
  ["it is compacted first", 200_000, 90],
] as const)(
  "20,000 entries, %s: neither opening nor the turns hold the loop",
  { timeout: 120_000 },
  async (_what, contextWindow, limit) => {
    const provider = scriptedProvider(() => says("## Goal\nGo on"));
    daemon = await startDaemon({ watch: false, env: {}, extensions: { scripted: [[provider.definition]] } });
    daemon.daemon.conversations.attached.select({ model: { ...scriptedModel, contextWindow } });
    const file = join(daemon.cwd, "long.jsonl");
    writeFileSync(file, sessionText(20_000, daemon.cwd));
    const opening = watchLoop();
    await daemon.ask("switch_session", { sessionPath: file });
    expect(opening()).toBeLessThan(OPENING);
    for (const text of ["go on", "and on"]) {
      const turn = watchLoop();
      const frames = await daemon.prompt(text);
      expect(turn()).toBeLessThan(limit);
      const compacts = text === "go on" && contextWindow === 200_000;
      expect(frames.some((frame) => frame.type === "auto_compaction_end")).toBe(compacts);
    }
    expect(provider.requests.at(-1)?.messages.length ?? 0).toBeGreaterThan(contextWindow === 200_000 ? 10 : 20_000);
    expect((await daemon.ask("get_last_assistant_text"))["text"]).toContain("Go on");
  },
);
