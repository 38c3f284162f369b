import { defineSlot, z } from "mortise/extension";

/** What a subagent was told, and the answer it handed in where a form was asked for. Empty in ordinary conversations. */
export const Assignment = defineSlot({
  name: "assignment",
  schema: z.object({
    systemPrompt: z.string(),
    context: z.string().optional(),
    /** JSON Schema of the answer. */
    output: z.record(z.string(), z.unknown()).optional(),
    answer: z.object({ data: z.unknown() }).optional(),
  }),
  initial: () => ({ systemPrompt: "", context: undefined, output: undefined, answer: undefined }),
});
