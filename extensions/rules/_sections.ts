// What the system prompt says of rules.
import { definePromptSection, type PromptSectionDefinition } from "mortise/extension";
import { bucketOf, type Rule } from "./_rule.ts";

/** Sections for these rules; made anew with every change, so that the prompt is rendered again. */
export function sectionsOf(rules: readonly Rule[]): PromptSectionDefinition[] {
  const always = rules.filter((rule) => bucketOf(rule) === "always");
  const listed = rules.filter((rule) => bucketOf(rule) === "listed");
  const sections: PromptSectionDefinition[] = [];
  if (always.length > 0) {
    const text = always.map(({ payload }) => `<rule name="${payload.name}">\n${payload.content}\n</rule>`).join("\n");
    sections.push(
      definePromptSection({ name: "rules", order: 30, stable: false, render: () => `Rules that always hold:\n${text}` }),
    );
  }
  if (listed.length > 0) {
    const lines = listed.map(({ payload: { name, description, globs } }) => {
      return `- rule://${name}: ${description}${globs === undefined ? "" : ` (for ${globs.join(", ")})`}`;
    });
    const text = `Rules for certain work. When you are about to do what one is about, read its address first and follow it.\n${lines.join("\n")}`;
    sections.push(
      definePromptSection({
        name: "listed-rules",
        order: 31,
        stable: false,
        render: (ctx) => (ctx.conversation.toolSchemas().some((tool) => tool.name === "read") ? text : undefined),
      }),
    );
  }
  return sections;
}
