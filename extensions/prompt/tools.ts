import { type Context, definePromptSection } from "mortise/extension";

/** What the offered tools say about themselves; the schemas go to the model separately. */
export default definePromptSection({
  name: "tools",
  order: 20,
  stable: true,
  render(ctx) {
    const tools = offeredTools(ctx);
    const snippets = tools.flatMap(({ name, promptSnippet }) => (promptSnippet ? [`- ${name}: ${oneLine(promptSnippet)}`] : []));
    const guidelines = [...new Set(tools.flatMap((tool) => tool.promptGuidelines ?? []).map(oneLine))].filter(
      (line) => line !== "",
    );
    const parts = [];
    if (snippets.length > 0) parts.push(`Your tools\n${snippets.join("\n")}`);
    if (guidelines.length > 0) parts.push(`Using them\n${guidelines.map((line) => `- ${line}`).join("\n")}`);
    return parts.join("\n\n");
  },
});

function offeredTools(ctx: Context) {
  return ctx.conversation.toolSchemas().flatMap(({ name }) => ctx.registry.get("tool", name)?.definition ?? []);
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}
