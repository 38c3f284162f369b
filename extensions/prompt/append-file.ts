import { definePromptSection } from "mortise/extension";
import { namedFile, optionTexts } from "./_option.ts";

/** `--append-system-prompt`, or an APPEND_SYSTEM.md, after everything else. */
export default definePromptSection({
  name: "append-file",
  order: 0,
  stable: false,
  append: true,
  render: async (ctx) => (await optionTexts(ctx, "appendSystemPrompt"))?.join("\n\n") ?? namedFile(ctx, "APPEND_SYSTEM.md"),
});
