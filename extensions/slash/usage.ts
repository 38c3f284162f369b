import { defineSlashCommand, type SessionEntry, Usage, z } from "mortise/extension";
import { columns, count, dollars } from "./_format.ts";

/** How a subagent ended, in the session of its parent; its usage holds that of its own subagents. */
const Ended = z.looseObject({ type: z.literal("subagent_spawn"), agentId: z.string(), usage: Usage });
const Counted = z.looseObject({ results: z.array(z.looseObject({ id: z.string() })) });

export default defineSlashCommand({
  name: "usage",
  description: "Show the tokens and the cost of the session",
  source: "builtin",
  run(ctx) {
    const { log } = ctx.conversation;
    const { tokens, cost, assistantMessages } = log.stats();
    const { all, uncounted } = subagentUsage(log.path());
    const more = sum(uncounted);
    ctx.output(
      columns([
        ["Answers", count(assistantMessages)],
        ["Input", `${count(tokens.input + more.input)} tokens`],
        ["Output", `${count(tokens.output + more.output)} tokens, ${count(tokens.reasoning + more.reasoning)} of them reasoning`],
        [
          "Cache",
          `${count(tokens.cacheRead + more.cacheRead)} tokens read, ${count(tokens.cacheWrite + more.cacheWrite)} written`,
        ],
        ["Total", `${count(tokens.total + more.total)} tokens`],
        ["Cost", dollars(cost + more.cost)],
        ...subagentRow(all),
      ]),
    );
  },
});

/** Those that worked as a job, or went on for a moment after an abort, are in no result of `task` that was counted. */
function subagentUsage(path: readonly SessionEntry[]): { all: Usage[]; uncounted: Usage[] } {
  const ended = new Map<string, Usage>();
  const counted = new Set<string>();
  for (const entry of path) {
    const record = Ended.safeParse(entry).data;
    if (record !== undefined) ended.set(record.agentId, record.usage);
    if (entry.type !== "message" || entry.message.role !== "toolResult") continue;
    for (const { id } of Counted.safeParse(entry.message.details).data?.results ?? []) counted.add(id);
  }
  return { all: [...ended.values()], uncounted: [...ended].filter(([id]) => !counted.has(id)).map(([, usage]) => usage) };
}

function subagentRow(list: readonly Usage[]): [string, string][] {
  if (list.length === 0) return [];
  const { total, cost } = sum(list);
  return [["Subagents", `${count(list.length)}, with ${count(total)} of the tokens and ${dollars(cost)} of the cost`]];
}

function sum(list: readonly Usage[]) {
  const add = (read: (usage: Usage) => number) => list.reduce((total, usage) => total + read(usage), 0);
  return {
    input: add(({ input }) => input),
    output: add(({ output }) => output),
    reasoning: add(({ reasoningTokens = 0 }) => reasoningTokens),
    cacheRead: add(({ cacheRead }) => cacheRead),
    cacheWrite: add(({ cacheWrite }) => cacheWrite),
    total: add(({ totalTokens }) => totalTokens),
    cost: add((usage) => usage.cost.total),
  };
}
