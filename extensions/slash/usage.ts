import { defineSlashCommand } from "mortise/extension";
import { columns, count, dollars } from "./_format.ts";

export default defineSlashCommand({
  name: "usage",
  description: "Show the tokens and the cost of the session",
  source: "builtin",
  run(ctx) {
    const { tokens, cost, assistantMessages } = ctx.conversation.log.stats();
    ctx.output(
      columns([
        ["Answers", count(assistantMessages)],
        ["Input", `${count(tokens.input)} tokens`],
        ["Output", `${count(tokens.output)} tokens, ${count(tokens.reasoning)} of them reasoning`],
        ["Cache", `${count(tokens.cacheRead)} tokens read, ${count(tokens.cacheWrite)} written`],
        ["Total", `${count(tokens.total)} tokens`],
        ["Cost", dollars(cost)],
      ]),
    );
  },
});
