// Agents that answer in a form (agent-semantics §3.5): the hidden `yield` tool, reminders, and answers that do not fit.
import { expect, it } from "vitest";
import type { ProviderRequest } from "../../../core/extension.ts";
import { calls, type Play, parent, says, start, taskResults } from "./_start.ts";

const NUMBER = "\n  type: object\n  required: [n]\n  properties: {n: {type: number}}";

/** What the requests of the agent asked for. */
let asked: ProviderRequest["toolChoice"][] = [];

/** The result of one agent with a form, and the model calls it took. */
async function fill(children: Play, output = NUMBER) {
  const file = `---\nname: form\ndescription: Fills a form\ntools: read\noutput:${output}\n---\nFill it`;
  asked = [];
  const noted: Play = (turn) => {
    asked.push(turn.request.toolChoice);
    return children(turn);
  };
  const all = await start(parent([{ task: "x", agent: "form" }], noted), { files: { "agents/f.md": file } });
  const [result] = taskResults(await all.daemon.prompt("Go"));
  return result?.details.results[0];
}
const hands = (id: number, data: unknown) => calls({ id: `y${id}`, name: "yield", args: { data } });

it("are reminded, corrected, and end with the answer that fits, as data", async () => {
  const result = await fill(({ turn }) => {
    if (turn === 0) return says("forgot");
    return hands(turn, { n: turn === 1 ? "seven" : 7 });
  });
  expect(result).toMatchObject({
    ...{ exitCode: 0, requests: 3 },
    extractedToolData: { yield: { n: 7 } },
    output: '{\n  "n": 7\n}',
  });
});

it("fail after three reminders without an answer", async () => {
  const error = "It did not hand in its answer after 3 reminders";
  expect(await fill(() => says("never"))).toMatchObject({ exitCode: 1, requests: 4, error });
  // The last one leaves no other choice, where the service can do that.
  expect(asked).toEqual([undefined, undefined, undefined, { tool: "yield" }]);
});

it("fail with the complaint when no answer fits, however often the model tries", async () => {
  const result = await fill(({ turn }) => hands(turn, { n: "seven" }));
  expect(result).toMatchObject({ exitCode: 1, requests: 4 });
  expect(result?.error).toMatch(/^The answer does not fit the form: .*number/);
  expect(result).not.toHaveProperty("extractedToolData");
});

it("fail with the reason when the form itself is wrong", async () => {
  const result = await fill(({ turn }) => hands(turn, "seven"), "\n  type: string\n  pattern: '['");
  expect(result).toMatchObject({ exitCode: 1, requests: 4 });
  expect(result?.error).toMatch(/^The form itself cannot be used: /);
});

it("may give up in words after a refusal: the reminder comes, the complaint is what is told", async () => {
  const result = await fill(({ turn }) => (turn === 0 ? hands(0, {}) : says("I cannot")));
  expect(result).toMatchObject({ exitCode: 1, requests: 5, output: "I cannot" });
  expect(result?.error).toMatch(/^The answer does not fit the form: /);
});
