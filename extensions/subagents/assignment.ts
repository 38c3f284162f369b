import { definePromptSection } from "mortise/extension";
import { Assignment } from "./_assignment.ts";

/** The agent's own instructions, after what it has in common with its parent, so that the beginning stays cached. */
const section = definePromptSection({
  name: "assignment",
  order: 90,
  stable: false,
  append: true,
  render(ctx) {
    if (!ctx.conversation.isSubagent) return undefined;
    const { systemPrompt, context, output } = ctx.conversation.slot(Assignment).get();
    const parts = [systemPrompt];
    if (context?.trim()) parts.push(`What the agent that sent you wants you to know:\n${context.trim()}`);
    if (output !== undefined) {
      const schema = JSON.stringify(output);
      parts.push(`When you are done, hand in your answer with the yield tool, as data that fits this JSON Schema:\n${schema}`);
    }
    return parts.filter((part) => part !== "").join("\n\n");
  },
});

export default [Assignment, section];
