import { defineSetting, SkillsEnableSkillCommands, z } from "mortise/extension";

export const Enabled = defineSetting({
  name: "skills.enabled",
  schema: z.boolean(),
  default: true,
  summary: "Whether skills are told to the model and offered as slash commands",
});

export const SkillCommands = SkillsEnableSkillCommands;
