// Answers that repeat themselves (agent-semantics §2.5: repeated text loops are cut).
import { describe, expect, it } from "vitest";
import type { ProviderEvent } from "../../../core/extension.ts";
import { done, says, scriptedProvider } from "../../support/scripted-provider.ts";
import { harness, textOf } from "./_harness.ts";

const PASSAGE = "Let me look at the file again, to be sure that it is right. ";

/** An answer that goes on for ever, a second with every 500 characters or so. */
function world(passage: (n: number) => string, kind: "text" | "thinking" = "text") {
  let clock = 1_000_000;
  let pieces = 0;
  const endless = async function* (): AsyncGenerator<ProviderEvent> {
    yield { type: `${kind}_start`, index: 0 };
    for (;;) {
      pieces++;
      clock += 120;
      yield { type: `${kind}_delta`, index: 0, delta: passage(pieces) };
      if (pieces % 400 === 0) await new Promise((resolve) => setImmediate(resolve));
      if (pieces > 5000) return yield done();
    }
  };
  return { endless, now: () => clock, pieces: () => pieces };
}

describe("an answer that repeats itself", () => {
  it.each(["text", "thinking"] as const)("in its %s is cut off, and the run goes on without it", async (kind) => {
    const { endless, now, pieces } = world(() => PASSAGE, kind);
    const provider = scriptedProvider(endless, says("on my way"));
    const h = harness({ provider, now });
    expect((await h.conversation.submit("Go").settled).status).toBe("completed");
    expect(pieces()).toBeLessThan(1000);
    const [first, second] = h.ends("assistant");
    expect(first).toMatchObject({ stopReason: "aborted", errorMessage: "Cut off: the same text was repeated over and over" });
    expect(textOf(second as never)).toBe("on my way");
    expect(provider.requests[1]?.messages).toHaveLength(2);
    expect(JSON.stringify(provider.requests[1]?.messages)).toContain("was cut off");
    expect(h.types().filter((type) => type === "agent_end")).toHaveLength(1);
    expect(provider.refused).toEqual([]);
  });

  it("for the third time in a row ends the run with an error", async () => {
    const { endless, now } = world(() => PASSAGE);
    const provider = scriptedProvider(() => endless());
    const h = harness({ provider, now });
    expect(await h.conversation.submit("Go").settled).toMatchObject({
      status: "error",
      errorMessage: "The model repeated itself in 3 answers in a row",
    });
    expect(provider.requests).toHaveLength(3);
  });

  it("is left alone when each passage is a little different, and when it is over soon", async () => {
    const different = world((n) => `Line ${n} of the table, with a few words behind it. `);
    const a = harness({ provider: scriptedProvider(different.endless), now: different.now });
    expect((await a.conversation.submit("Go").settled).status).toBe("completed");
    expect(different.pieces()).toBe(5001);
    const same = world(() => PASSAGE);
    const b = harness({ provider: scriptedProvider(same.endless), now: () => 1 });
    expect((await b.conversation.submit("Go").settled).status).toBe("completed");
    expect(same.pieces()).toBe(5001);
  });
});
