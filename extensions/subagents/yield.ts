import { type Context, defineTool, errorMessage, ToolError, textResult, z } from "mortise/extension";
import { Assignment } from "./_assignment.ts";

/** With more answers that do not fit the run is over: a model that cannot fill the form would try until its budget is used up. */
const MAX_REFUSALS = 4;

/** The form in which some agents answer. Offered to them only. */
export default defineTool({
  name: "yield",
  description: "Hand in the answer to your task. Call it once, when everything is done: it ends your work.",
  params: z.object({ data: z.unknown().describe("The answer, in the form that was asked for") }),
  hidden: true,
  concurrency: "exclusive",
  available: ({ isSubagent }) => isSubagent,
  async run(ctx, { data }) {
    const complaint = await complaintAbout(ctx, data);
    const slot = ctx.conversation.slot(Assignment);
    if (complaint === undefined) {
      slot.update((assignment) => ({ ...assignment, answer: { data } }));
      ctx.endRun();
      return textResult("The answer was handed in");
    }
    slot.update((assignment) => ({ ...assignment, refusals: assignment.refusals + 1, complaint }));
    if (slot.get().refusals >= MAX_REFUSALS) ctx.endRun();
    throw new ToolError(complaint);
  },
});

/** Why the answer cannot be taken; undefined when it fits. */
async function complaintAbout({ conversation }: Context, data: unknown): Promise<string | undefined> {
  const { output } = conversation.slot(Assignment).get();
  if (output === undefined) return undefined;
  const { Validator } = await import("@cfworker/json-schema");
  try {
    const { valid, errors } = new Validator(output, "2020-12", false).validate(data);
    if (valid) return undefined;
    const complaints = errors.slice(-5).map(({ instanceLocation, error }) => `${instanceLocation}: ${error}`);
    return `The answer does not fit the form: ${complaints.join("; ")}`;
  } catch (error) {
    return `The form itself cannot be used: ${errorMessage(error)}`;
  }
}
