import { definePromptSection, Skills } from "mortise/extension";

/** Names and descriptions; the instructions are read when they are needed, so only with a tool that can. */
export default definePromptSection({
  name: "skills",
  order: 20,
  stable: false,
  render(ctx) {
    if (!ctx.conversation.toolSchemas().some((tool) => tool.name === "read")) return undefined;
    const skills =
      ctx
        .tryUse(Skills)
        ?.list()
        .filter((skill) => !skill.hidden) ?? [];
    if (skills.length === 0) return undefined;
    const lines = skills.map(({ name, description }) => `- skill://${name}: ${description}`);
    return `Skills are instructions for certain tasks. When one fits the task, read its address first and follow it.\n${lines.join("\n")}`;
  },
});
