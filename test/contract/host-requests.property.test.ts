// Any interleaving of questions, answers, repeated and wrong answers, aborts and the end of input settles each question once.
import fc from "fast-check";
import { expect, it } from "vitest";
import { HostRequestTable } from "../../core/kernel/host-request-table.ts";
import hostToolCall from "../../extensions/host-tools/host-tool-call.ts";
import hostUriRequest from "../../extensions/host-uris/host-uri-request.ts";
import confirm from "../../extensions/ui/confirm.ts";
import input from "../../extensions/ui/input.ts";
import select from "../../extensions/ui/select.ts";
import type { Frame } from "../../protocol/frame.ts";

type Kind = "select" | "confirm" | "input" | "tool" | "uri";
type Action =
  | { do: "ask"; kind: Kind }
  | { do: "answer"; which: number; how: "fits" | "misfit" | "cancelled" | "unknown"; value: number }
  | { do: "abort"; which: number }
  | { do: "disconnect" };

const which = fc.nat(30);
const action: fc.Arbitrary<Action> = fc.oneof(
  {
    arbitrary: fc.record({
      do: fc.constant("ask" as const),
      kind: fc.constantFrom<Kind>("select", "confirm", "input", "tool", "uri"),
    }),
    weight: 6,
  },
  {
    arbitrary: fc.record({
      do: fc.constant("answer" as const),
      which,
      how: fc.constantFrom("fits" as const, "fits" as const, "misfit" as const, "cancelled" as const, "unknown" as const),
      value: fc.nat(9),
    }),
    weight: 10,
  },
  { arbitrary: fc.record({ do: fc.constant("abort" as const), which }), weight: 3 },
  { arbitrary: fc.constant({ do: "disconnect" as const }), weight: 1 },
);

interface Question {
  kind: Kind;
  id: string | undefined;
  stop: AbortController;
  settled: string[];
  expected: string | undefined;
}

const isDialog = (kind: Kind) => kind !== "tool" && kind !== "uri";

class World {
  readonly frames: Frame[] = [];
  readonly table = new HostRequestTable({ send: (frame) => this.frames.push(frame), hasUI: true });
  readonly questions: Question[] = [];
  disconnected = false;

  ask(kind: Kind): void {
    const stop = new AbortController();
    const question: Question = {
      kind,
      id: undefined,
      stop,
      settled: [],
      expected: this.disconnected ? "disconnected" : undefined,
    };
    const before = this.frames.length;
    this.#open(kind, stop.signal).then(
      (value) => question.settled.push(`value ${JSON.stringify(value ?? null)}`),
      (error: unknown) => question.settled.push(String(error).includes("disconnected") ? "disconnected" : "aborted"),
    );
    question.id = this.frames.length > before ? String(this.frames.at(-1)?.["id"]) : undefined;
    this.questions.push(question);
  }
  #open(kind: Kind, signal: AbortSignal): Promise<unknown> {
    if (kind === "select") return this.table.ui(select, { title: "?", options: options() }, { signal });
    if (kind === "confirm") return this.table.ui(confirm, { title: "?", message: "?" }, { signal });
    if (kind === "input") return this.table.ui(input, { title: "?" }, { signal });
    if (kind === "tool") return this.table.ask(hostToolCall, { toolCallId: "c", toolName: "t", arguments: {} }, { signal });
    return this.table.ask(hostUriRequest, { operation: "read", url: "db://a" }, { signal });
  }
  answer({ which, how, value }: Extract<Action, { do: "answer" }>): void {
    const question = this.questions[which];
    if (how === "unknown" || question?.id === undefined) return this.table.answer(`ui_${10_000 + value}`, { value: "x" });
    const { kind } = question;
    if (how === "cancelled" && isDialog(kind)) {
      question.expected ??= kind === "confirm" ? "value false" : "value null";
      return this.table.answer(question.id, { cancelled: true });
    }
    if (how === "misfit" && isDialog(kind)) return this.table.answer(question.id, { value: 7, confirmed: "yes" });
    const frame = fitting(kind, value);
    const read = kind === "confirm" ? frame["confirmed"] : isDialog(kind) ? frame["value"] : frame;
    question.expected ??= `value ${JSON.stringify(read)}`;
    this.table.answer(question.id, frame);
  }
  abort(which: number): void {
    const question = this.questions[which];
    if (question === undefined) return;
    question.expected ??= isDialog(question.kind) ? (question.kind === "confirm" ? "value false" : "value null") : "aborted";
    question.stop.abort();
  }
  disconnect(): void {
    this.disconnected = true;
    for (const question of this.questions) question.expected ??= "disconnected";
    this.table.disconnect();
  }
}

const options = () => Array.from({ length: 10 }, (_, index) => `option ${index}`);

function fitting(kind: Kind, value: number): Record<string, unknown> {
  if (kind === "select") return { value: `option ${value}` };
  if (kind === "confirm") return { confirmed: value % 2 === 0 };
  if (kind === "input") return { value: `text ${value}` };
  return kind === "tool" ? { result: { content: [value] } } : { content: `row ${value}` };
}

it("settles each question exactly once, by the first thing that counts", async () => {
  const numRuns = process.env["MORTISE_SOAK"] === undefined ? 300 : 20_000;
  await fc.assert(
    fc.asyncProperty(fc.array(action, { maxLength: 80 }), async (actions) => {
      const world = new World();
      for (const each of actions) {
        if (each.do === "ask") world.ask(each.kind);
        else if (each.do === "answer") world.answer(each);
        else if (each.do === "abort") world.abort(each.which);
        else world.disconnect();
      }
      const open = world.questions.filter((question) => question.expected === undefined).length;
      expect(world.table.size).toBe(open);
      world.disconnect();
      await new Promise((resolve) => setImmediate(resolve));
      for (const question of world.questions) expect(question.settled).toEqual([question.expected]);
      expect(world.table.size).toBe(0);
      const ids = world.frames.map((frame) => frame["id"]);
      expect(new Set(ids).size).toBe(ids.length);
      // One cancel for each that was given up while open, none else.
      const targets = world.frames.flatMap((frame) => (frame["targetId"] === undefined ? [] : [String(frame["targetId"])]));
      expect(new Set(targets).size).toBe(targets.length);
    }),
    { numRuns },
  );
});
