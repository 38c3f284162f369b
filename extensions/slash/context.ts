import { type ConversationHandle, defineSlashCommand, estimateTokens } from "mortise/extension";
import { modelName } from "./_announce.ts";
import { columns, count } from "./_format.ts";

/** As the estimate of messages counts. */
const CHARS_PER_TOKEN = 4;

/** What is in use as a whole comes from the service's last count; the parts are estimates, so they need not add up to it. */
export default defineSlashCommand({
  name: "context",
  description: "Show what the context window is filled with",
  source: "builtin",
  async run(ctx) {
    const { conversation } = ctx;
    const usage = conversation.contextUsage();
    const blocks = await conversation.systemPrompt();
    const tools = conversation.toolSchemas();
    ctx.output(
      columns([
        ["Model", modelName(conversation.selection.model)],
        ["In use", usage === undefined ? "unknown: no model is selected" : tokens(usage)],
        ["System prompt", `${about(blocks.join("").length)}, ${count(blocks.length)} blocks`],
        ["Tools", `${about(JSON.stringify(tools).length)}, ${count(tools.length)} tools`],
        ...messageRows(conversation),
      ]),
    );
  },
});

function messageRows({ messages }: ConversationHandle): [string, string][] {
  const parts = new Map<string, { number: number; tokens: number }>();
  for (const message of messages) {
    const part = parts.get(message.role) ?? { number: 0, tokens: 0 };
    parts.set(message.role, { number: part.number + 1, tokens: part.tokens + estimateTokens(message) });
  }
  if (parts.size === 0) return [["Messages", "none"]];
  return [...parts].map(([role, part]) => [
    `Messages: ${role}`,
    `about ${count(part.tokens)} tokens, ${count(part.number)} ${part.number === 1 ? "message" : "messages"}`,
  ]);
}

function about(chars: number): string {
  return `about ${count(Math.ceil(chars / CHARS_PER_TOKEN))} tokens`;
}

function tokens(usage: { tokens: number; contextWindow: number; percent: number }): string {
  if (usage.contextWindow === 0) return `${count(usage.tokens)} tokens of an unknown window`;
  const free = Math.max(0, usage.contextWindow - usage.tokens);
  return `${count(usage.tokens)} of ${count(usage.contextWindow)} tokens (${usage.percent.toFixed(1)} %), ${count(free)} free`;
}
