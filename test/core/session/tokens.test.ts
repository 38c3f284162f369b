// The size of a context is kept while it grows; whatever happens to the log, it is what a walk over all messages would give.
import fc from "fast-check";
import { expect, it } from "vitest";
import { ContextSize, estimateTokens } from "../../../core/session/tokens.ts";
import type { AgentMessage } from "../../../protocol/message.ts";
import { assistant, call, created, soak, usage, user } from "./_helpers.ts";

/** By definition: what the last counted answer since the last summary used, and an estimate of what follows it. */
function walked(messages: readonly AgentMessage[]): { estimated: number; tokens: number } {
  const estimated = messages.reduce((sum, message) => sum + estimateTokens(message), 0);
  const compactedAt = messages.findLast((message) => message.role === "compactionSummary")?.timestamp ?? -1;
  const counted = messages.findLastIndex(
    (message) =>
      message.role === "assistant" &&
      message.timestamp > compactedAt &&
      message.stopReason !== "error" &&
      message.stopReason !== "aborted" &&
      message.usage.totalTokens > 0,
  );
  const base = messages[counted];
  const after = messages.slice(counted + 1).reduce((sum, message) => sum + estimateTokens(message), 0);
  return { estimated, tokens: after + (base?.role === "assistant" ? base.usage.totalTokens : 0) };
}

const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("user" as const), length: fc.nat(400) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("answer" as const),
      total: fc.constantFrom(0, 15, 900),
      stop: fc.constantFrom("stop" as const, "error" as const, "aborted" as const),
      calls: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("compact" as const), back: fc.nat(4) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("branch" as const), back: fc.nat(4) }) },
);

it("equals a walk over all messages after every step", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      let time = 1000;
      const log = created(undefined);
      for (const each of steps) {
        time++;
        const { entries } = log;
        const target = entries.at(-1 - ("back" in each ? each.back : 0));
        if (each.kind === "user") log.append({ type: "message", message: user("x".repeat(each.length), time) });
        else if (each.kind === "answer") {
          const content = each.calls ? [call(`c${time}`, "bash", { command: "ls" })] : "said";
          const message = assistant(content, each.stop, time);
          log.append({
            type: "message",
            message: { ...message, usage: { ...usage, totalTokens: each.total, input: 0, output: 0 } },
          });
        } else if (target !== undefined && each.kind === "branch") log.branchTo(target.id);
        else if (target !== undefined)
          log.append({ type: "compaction", summary: "Summary", firstKeptEntryId: target.id, tokensBefore: 1 });
        const { estimated, tokens } = log.contextSize;
        expect({ estimated, tokens }).toEqual(walked(log.context()));
      }
    }),
    { numRuns: soak ? 5000 : 200 },
  );
});

it("a message costs one look when it comes, however many there are", () => {
  const size = new ContextSize();
  for (let index = 0; index < 10_000; index++) size.add(user("four", index));
  let reads = 0;
  const watched = new Proxy(user("more", 10_000), {
    get(target, name, receiver) {
      reads++;
      return Reflect.get(target, name, receiver);
    },
  });
  size.add(watched);
  expect(size.tokens).toBe(10_001);
  expect(reads).toBeLessThan(10);
});
