import { defineSetting, z } from "mortise/extension";

export const ContextFileNames = defineSetting<string[]>({
  name: "prompt.contextFiles",
  schema: z.array(z.string().min(1)),
  default: [".mortise/AGENTS.md", "AGENTS.md", "CLAUDE.md", ".claude/CLAUDE.md", "GEMINI.md", ".github/copilot-instructions.md"],
  trustedOnly: true,
  summary: "Instruction files looked for in every folder of a project; the first one in a folder counts, none with an empty list",
});
