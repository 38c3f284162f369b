import { definePromptSection } from "mortise/extension";
import { namedFile, optionTexts } from "./_option.ts";

/** `--system-prompt`, or a SYSTEM.md, instead of our own instructions. Plain text, no placeholders. */
export default definePromptSection({
  name: "system-file",
  // First, so that the sections it replaces are not rendered.
  order: -100,
  stable: true,
  replaces: true,
  render: async (ctx) => (await optionTexts(ctx, "systemPrompt"))?.join("\n\n") ?? namedFile(ctx, "SYSTEM.md"),
});
