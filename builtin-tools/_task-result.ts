// What the model is told of its subagents.
import { type SubagentResult, type ToolResult, truncateTail, type Usage } from "mortise/extension";

/** What all answers together may take up in the parent's context, in bytes. */
const MAX_TEXT = 200_000;

export function present(
  results: readonly SubagentResult[],
  totalDurationMs: number,
  more: { readonly projectAgentsDir: string | null },
): ToolResult {
  const share = Math.max(4000, Math.floor(MAX_TEXT / Math.max(1, results.length)));
  const text = results.map((result) => section(result, share)).join("\n\n");
  const usage = sum(results.map((result) => result.usage).filter((each) => each !== undefined));
  const outputPaths = results.map(({ outputPath }) => outputPath).filter((path) => path !== undefined);
  const failed = results.length > 0 && results.every(({ exitCode }) => exitCode !== 0);
  return {
    content: [{ type: "text", text }],
    details: {
      ...more,
      results,
      totalDurationMs,
      ...(usage === undefined ? {} : { usage }),
      ...(outputPaths.length > 0 ? { outputPaths } : {}),
    },
    ...(failed || results.some(({ aborted }) => aborted === true) ? { isError: true } : {}),
  };
}

function section(result: SubagentResult, share: number): string {
  const { id, agent, exitCode, aborted, error, abortReason, output } = result;
  const state = aborted === true ? `was stopped (${abortReason})` : exitCode === 0 ? "has finished" : `has failed: ${error}`;
  const cut = truncateTail(output, { maxBytes: share });
  const where = result.outputPath === undefined ? "" : ` The whole is in ${result.outputPath}`;
  const note = cut.truncated || result.truncated ? `[Only the end is shown.${where}]\n` : "";
  const body =
    cut.content.trim() === ""
      ? exitCode === 0
        ? "(no answer)"
        : ""
      : `${exitCode === 0 ? "" : "What it had so far:\n"}${cut.content}`;
  return `## ${id} (${agent}) ${state}\n${note}${body}`.trimEnd();
}

function sum(list: readonly Usage[]): Usage | undefined {
  if (list.length === 0) return undefined;
  const add = (read: (usage: Usage) => number) => list.reduce((total, usage) => total + read(usage), 0);
  return {
    input: add((usage) => usage.input),
    output: add((usage) => usage.output),
    cacheRead: add((usage) => usage.cacheRead),
    cacheWrite: add((usage) => usage.cacheWrite),
    totalTokens: add((usage) => usage.totalTokens),
    cost: {
      input: add((usage) => usage.cost.input),
      output: add((usage) => usage.cost.output),
      cacheRead: add((usage) => usage.cost.cacheRead),
      cacheWrite: add((usage) => usage.cost.cacheWrite),
      total: add((usage) => usage.cost.total),
    },
  };
}
