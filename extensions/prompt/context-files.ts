import { definePromptSection } from "mortise/extension";
import { contextFiles } from "./_context-files.ts";

export default definePromptSection({
  name: "context-files",
  order: 30,
  stable: false,
  async render(ctx) {
    const files = await contextFiles(ctx);
    if (files.length === 0) return undefined;
    const parts = files.map(({ path, text }) => `<file path="${path}">\n${text}\n</file>`);
    return [
      "Instructions of the user and the project. A later file is closer to the work and wins where two disagree.",
      `<context>\n${parts.join("\n")}\n</context>`,
    ].join("\n\n");
  },
});
