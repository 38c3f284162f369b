// A setting and a section of the system prompt. The setting is written `reply: { language: French }` in config.yml; a change there
// holds from the next run on.
import { definePromptSection, defineSetting, z } from "mortise/extension";

const ReplyLanguage = defineSetting({
  name: "reply.language",
  schema: z.string().regex(/^[A-Z][a-z]+$/, "Expected a language such as French"),
  default: "English",
  summary: "The language of the answers",
});

const section = definePromptSection({
  name: "reply language",
  order: 50,
  // Stable sections come first and are the same for every project and every day, so that the caches of model services hold. This
  // one depends on a setting.
  stable: false,
  render: (ctx) => `Answer in ${ctx.setting(ReplyLanguage)}, whatever language the code and its comments use.`,
});

export default [ReplyLanguage, section];
