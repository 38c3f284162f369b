import { defineSlashCommand } from "mortise/extension";
import { columns, count } from "./_format.ts";

export default defineSlashCommand({
  name: "context",
  description: "Show what the context window is filled with",
  source: "builtin",
  async run(ctx) {
    const { conversation } = ctx;
    const usage = conversation.contextUsage();
    const roles = new Map<string, number>();
    for (const { role } of conversation.messages) roles.set(role, (roles.get(role) ?? 0) + 1);
    const blocks = await conversation.systemPrompt();
    const chars = blocks.reduce((sum, block) => sum + block.length, 0);
    const messages = [...roles].map(([role, number]) => `${count(number)} ${role}`).join(", ");
    ctx.output(
      columns([
        ["Tokens", usage === undefined ? "unknown: no model is selected" : tokens(usage)],
        ["Messages", messages === "" ? "none" : messages],
        ["System prompt", `${blocks.length} blocks, ${count(chars)} characters`],
        ["Tools", String(conversation.toolSchemas().length)],
      ]),
    );
  },
});

function tokens(usage: { tokens: number; contextWindow: number; percent: number }): string {
  if (usage.contextWindow === 0) return `${count(usage.tokens)} of an unknown window`;
  return `${count(usage.tokens)} of ${count(usage.contextWindow)} (${usage.percent.toFixed(1)} %)`;
}
