import { expect, test } from "vitest";
import ask from "../../builtin-tools/ask.ts";
import { bench, textOf } from "./_support.ts";

type Select = { title: string; options: string[]; optionDetails?: { description?: string }[] };

/** A person who answers selects in turn and writes one text. */
function person(answers: (string | undefined | "timeout")[], text?: string) {
  const asked: Select[] = [];
  const ui = {
    select: async (params: Select, options: { onTimeout?: () => void }) => {
      asked.push(params);
      const answer = answers.shift();
      if (answer === "timeout") options.onTimeout?.();
      return answer === "timeout" ? undefined : answer;
    },
    editor: async () => text,
  };
  return { asked, ui };
}
const options = [{ label: "A", description: "first" }, { label: "B" }];

test("one question gives the chosen label without its mark", async () => {
  const { ui, asked } = person(["B (Recommended)"]);
  const b = bench({ ui });
  const result = await b.call(ask, { questions: [{ question: "Which?", options, recommended: 1 }] });
  expect(asked[0]).toMatchObject({ title: "Which?", options: ["A", "B (Recommended)", "Other (type your own)"] });
  expect(asked[0]?.optionDetails?.[0]).toEqual({ description: "first" });
  expect(textOf(result)).toBe("The user answered: B");
  expect(result.details).toEqual({ question: "Which?", options: ["A", "B"], multi: false, selectedOptions: ["B"] });
  await b.close();
});

test("several questions, several answers and own words", async () => {
  const { ui } = person(["[ ] A", "[ ] B", "[x] A", "Done selecting", "Other (type your own)"], "mine");
  const b = bench({ ui });
  const questions = [
    { id: "x", question: "Which ones?", options, multi: true },
    { id: "y", question: "Why?", options },
  ];
  const result = await b.call(ask, { questions });
  expect(result.details).toMatchObject({
    results: [
      { id: "x", selectedOptions: ["B"] },
      { id: "y", selectedOptions: [], customInput: "mine" },
    ],
  });
  expect(textOf(result)).toBe("x: B\ny: in their own words: mine");
  await b.close();
});

test("a time-out takes the recommended option and says so", async () => {
  const { ui } = person(["timeout"]);
  const b = bench({ ui, settings: { "ask.timeout": 5 } });
  const result = await b.call(ask, { questions: [{ question: "Which?", options, recommended: 1 }] });
  expect(result.details).toMatchObject({ selectedOptions: ["B"], timedOut: true });
  await b.close();
});

test("cancelling gives an error result", async () => {
  const { ui } = person([undefined]);
  const b = bench({ ui });
  expect(await b.call(ask, { questions: [{ question: "Which?", options }] })).toMatchObject({
    isError: true,
    details: { cancelled: true },
  });
  await b.close();
});

test("equal labels and a recommendation that does not exist are refused", async () => {
  const b = bench({ ui: {} });
  expect(await b.call(ask, { questions: [{ question: "?", options: [{ label: "A" }, { label: "A" }] }] })).toMatchObject({
    isError: true,
  });
  expect(await b.call(ask, { questions: [{ question: "?", options, recommended: 2 }] })).toMatchObject({ isError: true });
  await b.close();
});

test("is offered only where dialogs are shown", () => {
  const at = (mode: "rpc" | "rpc-ui", hasUI: boolean, isSubagent = false) =>
    ask.available?.({ mode, hasUI, isSubagent, setting: <T>() => undefined as T });
  expect([at("rpc-ui", true), at("rpc", true), at("rpc-ui", false), at("rpc-ui", true, true)]).toEqual([
    true,
    false,
    false,
    false,
  ]);
});
