import { defineSlot, z } from "mortise/extension";

/** What a subagent was told, and the answer it handed in where a form was asked for. Empty in ordinary conversations. */
export const Assignment = defineSlot({
  name: "assignment",
  schema: z.object({
    systemPrompt: z.string(),
    /** 0 for the conversations of people. */
    depth: z.number().int(),
    /** Agents it may start: all, or by name; undefined for none. */
    spawns: z.union([z.literal("*"), z.array(z.string())]).optional(),
    context: z.string().optional(),
    /** JSON Schema of the answer. */
    output: z.record(z.string(), z.unknown()).optional(),
    answer: z.object({ data: z.unknown() }).optional(),
    /** It was reminded for the last time: nothing is left but to hand in. */
    isLastCall: z.boolean(),
    /** Answers that did not fit, and what was wrong with the last one. */
    refusals: z.number().int(),
    complaint: z.string().optional(),
  }),
  initial: () => ({
    ...{ systemPrompt: "", depth: 0, refusals: 0, isLastCall: false },
    ...{ spawns: undefined, context: undefined, output: undefined, answer: undefined, complaint: undefined },
  }),
});
