import { defineUiMethod, z } from "mortise/extension";

/** Takes no time-out: people write as long as they like. */
const editor = defineUiMethod({
  name: "editor",
  mode: "dialog",
  summary: "Asks for text of several lines.",
  params: z.object({ title: z.string(), prefill: z.string().optional(), promptStyle: z.boolean().optional() }),
  read: (answer): { value: string | undefined } | undefined =>
    typeof answer.value === "string" ? { value: answer.value } : undefined,
  allowTimeout: false,
  source: "both",
  example: { title: "Commit message", prefill: "Fix the parser" },
});

declare module "mortise/extension" {
  interface UiMethods {
    editor: typeof editor;
  }
}

export default editor;
