import { AskTimeout, defineTool, type ToolContext, ToolError, type ToolResult, textResult, z } from "mortise/extension";

const option = z.object({ label: z.string().min(1), description: z.string().optional() });
const question = z.object({
  id: z.string().optional().describe("Names the answer when there are several questions"),
  question: z.string().min(1),
  options: z.array(option).describe("Answers to choose from; writing an own one is always possible"),
  multi: z.boolean().optional().describe("Several may be chosen"),
  recommended: z.number().int().min(0).optional().describe("Index of the option you would choose"),
});
type Question = z.infer<typeof question>;

const params = z.object({ questions: z.array(question).min(1) });

interface Answer {
  selectedOptions: string[];
  customInput?: string;
  timedOut?: boolean;
}

/** What the person did with one dialog. */
type Choice = { label: string } | "other" | "timeout" | "cancel";

const OTHER = "Other (type your own)";
const DONE = "Done selecting";
const RECOMMENDED = " (Recommended)";

export default defineTool<z.infer<typeof params>>({
  name: "ask",
  description:
    "Ask the user when a decision is theirs and cannot be found out. Give concrete options; mark the one you recommend. Do not ask for what you can look up.",
  promptSnippet: "Ask the user",
  params,
  readOnly: true,
  concurrency: "exclusive",
  // 000_…: the ask tool is registered in rpc-ui and absent in rpc.
  available: (ctx) => ctx.mode === "rpc-ui" && ctx.hasUI && !ctx.isSubagent,
  async run(ctx, { questions }) {
    for (const item of questions) check(item);
    const answers: Answer[] = [];
    for (const item of questions) {
      const answer = await askOne(ctx, item);
      if (answer === undefined) return cancelled(ctx);
      answers.push(answer);
    }
    return present(questions, answers);
  },
});

function check(item: Question): void {
  const labels = item.options.map(({ label }) => label);
  if (new Set(labels).size < labels.length) throw new ToolError(`Cannot ask "${item.question}": two options have the same label`);
  if (item.recommended !== undefined && item.recommended >= labels.length) {
    throw new ToolError(
      `Cannot ask "${item.question}": recommended is ${item.recommended}, but there are ${labels.length} options`,
    );
  }
}

/** Undefined when the person gave up. */
async function askOne(ctx: ToolContext, item: Question): Promise<Answer | undefined> {
  if (item.options.length === 0) return own(ctx, item, []);
  return item.multi ? askSeveral(ctx, item) : askSingle(ctx, item);
}

async function askSingle(ctx: ToolContext, item: Question): Promise<Answer | undefined> {
  const labels = item.options.map(({ label }, index) => shownLabel(item, label, index));
  const choice = await choose(ctx, item, labels);
  if (choice === "cancel") return undefined;
  if (choice === "other") return own(ctx, item, []);
  if (choice === "timeout") return { selectedOptions: [fallback(item)], timedOut: true };
  return { selectedOptions: [item.options[labels.indexOf(choice.label)]?.label ?? choice.label] };
}

/** A list with marks, shown again after every choice until it is done. */
async function askSeveral(ctx: ToolContext, item: Question): Promise<Answer | undefined> {
  const chosen = new Set<number>();
  for (;;) {
    const labels = item.options.map(
      ({ label }, index) => `${chosen.has(index) ? "[x]" : "[ ]"} ${shownLabel(item, label, index)}`,
    );
    const choice = await choose(ctx, item, chosen.size > 0 ? [...labels, DONE] : labels);
    const picked = () => item.options.filter((_, index) => chosen.has(index)).map(({ label }) => label);
    if (choice === "cancel") return undefined;
    if (choice === "other") return own(ctx, item, picked());
    if (choice === "timeout") return { selectedOptions: chosen.size > 0 ? picked() : [fallback(item)], timedOut: true };
    if (choice.label === DONE) return { selectedOptions: picked() };
    const index = labels.indexOf(choice.label);
    if (!chosen.delete(index)) chosen.add(index);
  }
}

async function choose(ctx: ToolContext, item: Question, labels: readonly string[]): Promise<Choice> {
  const seconds = ctx.setting(AskTimeout);
  let timedOut = false;
  const label = await ctx.ui.select(
    {
      title: item.question,
      options: [...labels, OTHER],
      optionDetails: [...labels, OTHER].map((_, index) => {
        const description = item.options[index]?.description;
        return description === undefined ? {} : { description };
      }),
    },
    {
      signal: ctx.signal,
      ...(seconds > 0 ? { timeout: seconds * 1000 } : {}),
      onTimeout: () => {
        timedOut = true;
      },
    },
  );
  ctx.signal.throwIfAborted();
  if (label === undefined) return timedOut ? "timeout" : "cancel";
  return label === OTHER ? "other" : { label };
}

async function own(ctx: ToolContext, item: Question, selectedOptions: string[]): Promise<Answer | undefined> {
  const text = await ctx.ui.editor({ title: item.question, promptStyle: true }, { signal: ctx.signal });
  ctx.signal.throwIfAborted();
  return text === undefined ? undefined : { selectedOptions, customInput: text };
}

function shownLabel(item: Question, label: string, index: number): string {
  return index === item.recommended ? `${label}${RECOMMENDED}` : label;
}

function fallback(item: Question): string {
  return item.options[item.recommended ?? 0]?.label ?? "";
}

/** The person does not want to answer: the run ends, the call keeps its result. */
function cancelled(ctx: ToolContext): ToolResult {
  // Not awaited: the run waits for this call.
  void ctx.conversation.abort("The question was cancelled").catch(() => {});
  return { ...textResult("The user cancelled the question", { cancelled: true }), isError: true };
}

function present(questions: readonly Question[], answers: readonly Answer[]): ToolResult {
  const results = questions.map((item, index) => ({
    ...(item.id === undefined ? {} : { id: item.id }),
    question: item.question,
    options: item.options.map(({ label }) => label),
    multi: item.multi ?? false,
    ...(answers[index] ?? { selectedOptions: [] }),
  }));
  const lines = results.map((result) => {
    const parts = [...result.selectedOptions];
    if (result.customInput !== undefined) parts.push(`in their own words: ${result.customInput}`);
    const answer = parts.length > 0 ? parts.join(", ") : "(nothing selected)";
    const timedOut = result.timedOut ? " (nobody answered in time; this is the default)" : "";
    return questions.length > 1
      ? `${result.id ?? result.question}: ${answer}${timedOut}`
      : `The user answered: ${answer}${timedOut}`;
  });
  const [only] = results;
  return textResult(lines.join("\n"), results.length === 1 ? only : { results });
}
