// A thousand commands in one write, a third of them malformed: each is answered once, the lane in order.
import fc from "fast-check";
import { expect, it } from "vitest";
import { collect } from "../../docs/collect.ts";
import type { Frame } from "../../protocol/frame.ts";
import { startProcess } from "../support/process.ts";

const RUNS = process.env["MORTISE_SOAK"] === undefined ? 1 : 20;
const COUNT = 1_000;

/** `lane` answers come in arrival order, `early` ones when the line is read, `beside` ones at any time. */
type Place = "lane" | "early" | "beside";
interface Line {
  readonly place: Place;
  /** The text for a line, given its number. */
  readonly text: (index: number) => string;
  /** What its response is recognised by; undefined: by nothing but being an answer without id and name. */
  readonly key: (index: number) => string;
  readonly success: boolean | undefined;
}

const id = (index: number): string | number => (index % 2 === 0 ? `c${index}` : index);
const concurrent = new Set(
  collect("command").flatMap(({ definition }) => (definition.concurrency === "concurrent" ? [definition.name] : [])),
);
/** A failure of the parameters is answered in the lane, whatever the command. */
const command = (success: boolean | undefined, fields: { type: string; [field: string]: unknown }, misfit = false): Line => ({
  place: concurrent.has(fields.type) && !misfit ? "beside" : "lane",
  text: (index) => JSON.stringify({ id: id(index), ...fields }),
  key: (index) => `id ${id(index)}`,
  success,
});

const fine: fc.Arbitrary<Line> = fc.oneof(
  fc
    .constantFrom(
      "get_state",
      "get_messages",
      "get_session_stats",
      "get_available_commands",
      "get_branch_messages",
      "abort",
      "abort_bash",
      "abort_retry",
      "get_last_assistant_text",
      "get_messages_page",
      "list_sessions",
      "get_tree",
    )
    .map((type) => command(type === "get_messages_page" ? undefined : true, { type })),
  fc
    .string({ minLength: 1, maxLength: 20, unit: "grapheme" })
    .map((name) => command(undefined, { type: "set_session_name", name })),
  fc.constantFrom("all", "one-at-a-time").map((mode) => command(true, { type: "set_steering_mode", mode })),
  fc.boolean().map((enabled) => command(true, { type: "set_auto_retry", enabled })),
  fc.constant(command(true, { type: "new_session" })),
  fc.constant(command(true, { type: "set_todos", phases: [{ name: "P", tasks: [{ content: "c", status: "pending" }] }] })),
  fc.constantFrom("get_available_models", "get_login_providers").map((type) => command(true, { type })),
  fc.constant(command(true, { type: "set_model", provider: "offline", modelId: "echo" })),
  fc.constant(command(false, { type: "set_model", provider: "offline", modelId: "missing" })),
  fc.constant(command(true, { type: "bash", command: "true" })),
  fc.constant(command(true, { type: "prompt", message: "hello" })),
  fc.constant(command(true, { type: "prompt", message: "more", streamingBehavior: "followUp" })),
  fc.constant(command(true, { type: "follow_up", message: "later" })),
);
const malformed: fc.Arbitrary<Line> = fc.oneof(
  fc
    .constantFrom('{"id":', "nonsense", "{", '{"type":"get_state"', "null", "[1", "\\u2028")
    .map((text): Line => ({ place: "early", text: () => text, key: () => "parse", success: false })),
  fc
    .constantFrom("42", "[]", '"get_state"', "{}", '{"type":7}', "true")
    .map((text): Line => ({ place: "early", text: () => text, key: () => "nothing", success: false })),
  fc.constant<Line>({
    place: "lane",
    text: (index) => JSON.stringify({ id: id(index), type: `no_such_${index}` }),
    key: (index) => `command no_such_${index}`,
    success: false,
  }),
  fc
    .constantFrom<{ type: string; [field: string]: unknown }>(
      { type: "prompt" },
      { type: "prompt", message: 7 },
      { type: "set_todos", phases: "x" },
      { type: "set_steering_mode", mode: "none" },
      { type: "bash" },
      { type: "switch_session", sessionPath: "missing.jsonl" },
      { type: "branch", entryId: 1 },
      { type: "set_auto_retry", enabled: "yes" },
      { type: "negotiate_protocol", protocolVersion: 9 },
    )
    .map((fields) => command(false, fields, true)),
);
const lines = fc.array(fc.oneof({ arbitrary: fine, weight: 2 }, { arbitrary: malformed, weight: 1 }), {
  minLength: COUNT,
  maxLength: COUNT,
});

function keyOf(frame: Frame): string {
  if (frame["id"] !== undefined) return `id ${String(frame["id"])}`;
  if (frame["command"] === "parse") return "parse";
  return frame["command"] === undefined ? "nothing" : `command ${String(frame["command"])}`;
}

it(
  "a thousand pipelined commands of all kinds are answered once each, in the lane's order",
  async () => {
    const property = fc.asyncProperty(lines, async (batch) => {
      const daemon = startProcess();
      try {
        const text = batch.map((line, index) => `${line.text(index)}\n`).join("");
        daemon.send(Buffer.from(`${text}{"id":"the end","type":"get_state"}\n`));
        await daemon.next((frame) => frame["id"] === "the end", { after: 0, timeoutMs: 120_000 });
        expect(await daemon.end()).toBe(0);
        const responses = daemon.frames.filter((frame) => frame.type === "response" && frame["id"] !== "the end");
        const first = new Map<string, Frame>();
        const order: string[] = [];
        let parse = 0;
        let nothing = 0;
        for (const frame of responses) {
          const key = keyOf(frame);
          if (key === "parse") parse++;
          else if (key === "nothing") nothing++;
          else if (first.has(key)) {
            // Only what was acknowledged may fail once more: a prompt while a run goes on, or whose session went away.
            expect(first.get(key), key).toMatchObject({ success: true });
            expect(["prompt", "follow_up"]).toContain(frame["command"]);
            expect(frame, key).toMatchObject({ success: false });
          } else {
            first.set(key, frame);
            order.push(key);
          }
        }
        const keys = batch.map((line, index) => line.key(index));
        expect(parse).toBe(keys.filter((key) => key === "parse").length);
        expect(nothing).toBe(keys.filter((key) => key === "nothing").length);
        const texts = new Map(batch.map((line, index) => [keys[index], `${keys[index]}: ${line.text(index).slice(0, 120)}`]));
        const lane = keys.filter((_key, index) => batch[index]?.place === "lane");
        const laneKeys = new Set(lane);
        expect(order.filter((key) => laneKeys.has(key)).map((key) => texts.get(key))).toEqual(lane.map((key) => texts.get(key)));
        const beside = keys.filter((_key, index) => batch[index]?.place === "beside");
        const answered = new Set(order);
        expect(beside.filter((key) => !answered.has(key)).map((key) => texts.get(key))).toEqual([]);
        expect(order.filter((key) => !laneKeys.has(key))).toHaveLength(beside.length);
        const failures: string[] = [];
        for (const [index, line] of batch.entries()) {
          const answer = first.get(String(keys[index]));
          if (line.success !== undefined && answer !== undefined && answer["success"] !== line.success) {
            failures.push(`${line.text(index)} → ${JSON.stringify(answer).slice(0, 300)}`);
          }
        }
        expect(failures).toEqual([]);
        // Late failures: at most one an id.
        const counts = new Map<string, number>();
        for (const frame of responses)
          if (frame["id"] !== undefined) counts.set(keyOf(frame), (counts.get(keyOf(frame)) ?? 0) + 1);
        expect([...counts.values()].every((count) => count <= 2)).toBe(true);
      } finally {
        await daemon.dispose();
      }
    });
    const parameters = { numRuns: RUNS, endOnFailure: true, seed: fc.readConfigureGlobal().seed ?? Date.now() % 2 ** 31 };
    process.stderr.write(`pipelined-commands: seed ${parameters.seed}\n`);
    await fc.assert(property, parameters);
  },
  300_000 * RUNS,
);
