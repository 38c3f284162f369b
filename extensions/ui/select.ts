import { defineUiMethod, z } from "mortise/extension";

const select = defineUiMethod({
  name: "select",
  mode: "dialog",
  summary: "Lets the person choose one of several labels. An answer that was not offered is not accepted.",
  params: z.object({
    title: z.string(),
    options: z.array(z.string()).describe("Plain labels"),
    optionDetails: z
      .array(z.object({ description: z.string().optional() }))
      .optional()
      .describe("By position, for hosts that show more than a label"),
  }),
  read: (answer, params): { value: string | undefined } | undefined =>
    typeof answer.value === "string" && params.options.includes(answer.value) ? { value: answer.value } : undefined,
  source: "both",
  example: { title: "Pick a branch", options: ["main", "next"] },
});

declare module "mortise/extension" {
  interface UiMethods {
    select: typeof select;
  }
}

export default select;
