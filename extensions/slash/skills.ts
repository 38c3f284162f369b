import { defineSlashCommand, Skills } from "mortise/extension";
import { columns, oneLine } from "./_format.ts";

export default defineSlashCommand({
  name: "skills",
  description: "List the skills",
  source: "builtin",
  run(ctx) {
    const skills = ctx.tryUse(Skills)?.list() ?? [];
    if (skills.length === 0) {
      ctx.output("There are no skills. Put one into skills/<name>/SKILL.md, with a name and a description in its head");
      return;
    }
    const note = (skill: { origin: string; hidden: boolean }) =>
      `(${skill.origin}${skill.hidden ? ", not told to the model" : ""})`;
    ctx.output(columns(skills.map((skill) => [skill.name, `${oneLine(skill.description, 80)} ${note(skill)}`])));
  },
});
