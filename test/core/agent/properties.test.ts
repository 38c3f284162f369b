// Random schedules over the whole runtime: nothing queued is lost or doubled, and whatever is aborted leaves paired history.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { defineTool, z } from "../../../core/extension.ts";
import { repairForProvider } from "../../../core/session/repair.ts";
import type { AgentMessage } from "../../../protocol/message.ts";
import { calls, type Reply, says, scriptedProvider, whyRefused } from "../../support/scripted-provider.ts";
import { harness, textOf } from "./_harness.ts";

const RUNS = process.env["MORTISE_SOAK"] === undefined ? 40 : 2000;

const hop = () => new Promise<void>((resolve) => setImmediate(resolve));
async function hops(count: number): Promise<void> {
  for (let n = 0; n < count; n++) await hop();
}

const tools = [
  defineTool({
    name: "work",
    description: "takes some turns of the event loop",
    params: z.object({ hops: z.number() }),
    run: async (_ctx, { hops: count }) => {
      await hops(count);
      return "worked";
    },
  }),
  defineTool({
    name: "alone",
    description: "exclusive",
    params: z.object({ hops: z.number() }),
    concurrency: "exclusive",
    run: async (_ctx, { hops: count }) => {
      await hops(count);
      return "worked alone";
    },
  }),
  defineTool({
    name: "wait",
    description: "a pure wait",
    params: z.object({ hops: z.number() }),
    interruptible: true,
    run: async (ctx, { hops: count }) => {
      for (let n = 0; n < count && !ctx.signal.aborted; n++) await hop();
      return "waited";
    },
  }),
];

/** What the model does, by turn: a list of calls (none: text), with pauses in the stream. */
const turnPlan = fc.record({
  pauses: fc.nat(3),
  calls: fc.array(fc.record({ name: fc.constantFrom("work", "alone", "wait", "missing"), hops: fc.nat(4) }), { maxLength: 3 }),
});
type TurnPlan = { pauses: number; calls: { name: string; hops: number }[] };

function replyOf(plan: TurnPlan, turn: number): Reply {
  const base =
    plan.calls.length === 0
      ? says(`answer ${turn}`, " end")
      : calls(...plan.calls.map((call, n) => ({ id: `c${turn}_${n}`, name: call.name, args: { hops: call.hops } })));
  return base.flatMap((step, index) => (index > 0 && index <= plan.pauses ? [hop, step] : [step]));
}

const users = (messages: readonly AgentMessage[]) => messages.filter((message) => message.role === "user").map(textOf);

/** Every stored call has exactly one stored result. */
function expectPaired(messages: readonly AgentMessage[]): void {
  const asked = messages.flatMap((message) =>
    message.role === "assistant" ? message.content.filter((block) => block.type === "toolCall").map((block) => block.id) : [],
  );
  const answered = messages.flatMap((message) => (message.role === "toolResult" ? [message.toolCallId] : []));
  expect([...answered].sort()).toEqual([...asked].sort());
  expect(new Set(answered).size).toBe(answered.length);
}

describe("random schedules", () => {
  it("deliver every steer and follow-up exactly once, in order", async () => {
    const event = fc.record({ delivery: fc.constantFrom("steer" as const, "followUp" as const), after: fc.nat(12) });
    const modes = fc.constantFrom("all" as const, "one-at-a-time" as const);
    await fc.assert(
      fc.asyncProperty(
        fc.array(turnPlan, { minLength: 1, maxLength: 6 }),
        fc.array(event, { maxLength: 8 }),
        modes,
        modes,
        fc.constantFrom("immediate" as const, "wait" as const),
        async (plans, events, steering, follow, interrupt) => {
          const provider = scriptedProvider((_request, turn) => replyOf(plans[turn] ?? { pauses: 0, calls: [] }, turn));
          const h = harness({ provider, definitions: tools });
          Object.assign(h.conversation.queue, { steeringMode: steering, followUpMode: follow, interruptMode: interrupt });
          const first = h.conversation.submit("prompt");
          const sent = { steer: [] as string[], followUp: [] as string[] };
          for (const [index, { delivery, after }] of events.entries()) {
            await hops(after);
            const text = `${delivery} ${index}`;
            sent[delivery].push(text);
            await h.conversation.submit(text, { delivery });
          }
          await first.settled;
          for (let quiet = 0; quiet < 3; quiet++) {
            await h.conversation.whenIdle();
            await hop();
          }
          const delivered = users(h.conversation.messages);
          expect([...delivered].sort()).toEqual(["prompt", ...sent.steer, ...sent.followUp].sort());
          expect(delivered.filter((text) => text.startsWith("steer"))).toEqual(sent.steer);
          expect(delivered.filter((text) => text.startsWith("followUp"))).toEqual(sent.followUp);
          expect(h.conversation.queue.count).toBe(0);
          expect(provider.refused).toEqual([]);
          expectPaired(h.conversation.messages);
          // Nobody's message stands at the end without an answer.
          expect(h.conversation.messages.at(-1)?.role).toBe("assistant");
        },
      ),
      { numRuns: RUNS },
    );
  }, 300_000);

  it("leave paired history and lose nothing whenever they are aborted", async () => {
    const step = fc.record({ kind: fc.constantFrom("abort", "steer", "followUp", "prompt"), after: fc.nat(15) });
    await fc.assert(
      fc.asyncProperty(
        fc.array(turnPlan, { minLength: 1, maxLength: 5 }),
        fc.array(step, { minLength: 1, maxLength: 6 }),
        async (plans, steps) => {
          // A script of calls only would never end: late turns are text.
          const provider = scriptedProvider((_request, turn) =>
            turn > 20 ? says("stop") : replyOf(plans[turn % plans.length] ?? { pauses: 0, calls: [] }, turn),
          );
          const h = harness({ provider, definitions: tools });
          let n = 0;
          const wanted: string[] = [];
          const submit = (delivery?: "steer" | "followUp") => {
            const text = `message ${n++}`;
            const work = h.conversation.submit(text, { delivery });
            return work.then(
              () => void wanted.push(text),
              () => {},
            );
          };
          await submit();
          for (const { kind, after } of steps) {
            await hops(after);
            if (kind === "abort") await h.conversation.abort();
            else await submit(kind === "prompt" ? undefined : (kind as "steer" | "followUp"));
          }
          await h.conversation.abort(undefined, { resume: false });
          await h.conversation.whenIdle();
          const kept = [
            ...users(h.conversation.messages),
            ...h.conversation.queue.steering.map(textOf),
            ...h.conversation.queue.followUp.map(textOf),
          ];
          expect([...kept].sort()).toEqual([...wanted].sort());
          expectPaired(h.conversation.messages);
          expect(provider.refused).toEqual([]);
          expect(whyRefused(repairForProvider(h.conversation.messages))).toBeUndefined();
          const starts = h.types().filter((type) => type === "agent_start").length;
          expect(h.types().filter((type) => type === "agent_end")).toHaveLength(starts);
          expect(h.types().filter((type) => type === "turn_start")).toHaveLength(
            h.types().filter((type) => type === "turn_end").length,
          );
        },
      ),
      { numRuns: RUNS },
    );
  }, 300_000);
});
