import {
  AgentDelegation,
  type AgentMessage,
  beforeAgentStart,
  type ConversationHandle,
  defineHook,
  definePromptSection,
  Subagents,
} from "mortise/extension";

/** Which agents there are, and how readily work is to be handed to them. */
const section = definePromptSection({
  name: "agents",
  order: 30,
  stable: false,
  async render(ctx) {
    const subagents = ctx.tryUse(Subagents);
    const { conversation } = ctx;
    if (subagents === undefined || !mayDelegate(conversation)) return undefined;
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

/** With `agent.delegation: always` the first prompt of a session is followed by a reminder (agent-semantics §6). */
const reminder = defineHook(beforeAgentStart, (plan, ctx) => {
  const { conversation, prompt } = plan;
  const isFirst = prompt?.role === "user" && conversation.log.firstUserMessage() === undefined;
  if (!isFirst || conversation.isSubagent || ctx.setting(AgentDelegation) !== "always" || !mayDelegate(conversation)) return plan;
  const content = "Before you begin: find the parts of this that can stand alone, and hand them to subagents with the task tool.";
  const message: AgentMessage = { role: "developer", content, timestamp: Date.now(), attribution: "agent" };
  return { ...plan, extraMessages: [...plan.extraMessages, message] };
});

export default [section, reminder];

function mayDelegate(conversation: ConversationHandle): boolean {
  return conversation.toolSchemas().some(({ name }) => name === "task");
}
