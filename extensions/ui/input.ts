import { defineUiMethod, z } from "mortise/extension";

const input = defineUiMethod({
  name: "input",
  mode: "dialog",
  summary: "Asks for one line of text.",
  params: z.object({ title: z.string(), placeholder: z.string().optional() }),
  read: (answer): { value: string | undefined } | undefined =>
    typeof answer.value === "string" ? { value: answer.value } : undefined,
  source: "both",
  example: { title: "Branch name", placeholder: "feature/..." },
});

declare module "mortise/extension" {
  interface UiMethods {
    input: typeof input;
  }
}

export default input;
