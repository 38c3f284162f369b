import { AgentDelegation, definePromptSection, Subagents } from "mortise/extension";

/** Which agents there are, and how readily work is to be handed to them. */
export default definePromptSection({
  name: "agents",
  order: 30,
  stable: false,
  async render(ctx) {
    const subagents = ctx.tryUse(Subagents);
    const { conversation } = ctx;
    if (subagents === undefined || !conversation.toolSchemas().some(({ name }) => name === "task")) return undefined;
    const definitions = await subagents.definitions(conversation);
    const list = definitions.map(({ name, description }) => `- ${name}: ${description}`).join("\n");
    const delegation = ctx.setting(AgentDelegation);
    const advice =
      delegation === "default"
        ? ""
        : `\n${delegation === "always" ? "Always hand" : "Prefer to hand"} work that can stand alone to them, and keep this conversation for deciding and putting together.`;
    return `Agents for the task tool\n${list}${advice}`;
  },
});
