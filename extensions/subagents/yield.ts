import { defineTool, ToolError, textResult, z } from "mortise/extension";
import { Assignment } from "./_assignment.ts";

/** The form in which some agents answer. Offered to them only. */
export default defineTool({
  name: "yield",
  description: "Hand in the answer to your task. Call it once, when everything is done; then stop.",
  params: z.object({ data: z.unknown().describe("The answer, in the form that was asked for") }),
  hidden: true,
  concurrency: "exclusive",
  available: ({ isSubagent }) => isSubagent,
  async run(ctx, { data }) {
    const slot = ctx.conversation.slot(Assignment);
    const { output } = slot.get();
    if (output !== undefined) {
      const { Validator } = await import("@cfworker/json-schema");
      const checked = new Validator(output, "2020-12", false).validate(data);
      const complaints = checked.errors.slice(-5).map(({ instanceLocation, error }) => `${instanceLocation}: ${error}`);
      if (!checked.valid) throw new ToolError(`The answer does not fit the form: ${complaints.join("; ")}`);
    }
    slot.update((assignment) => ({ ...assignment, answer: { data } }));
    return textResult("The answer was handed in");
  },
});
