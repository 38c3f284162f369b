import {
  CommandError,
  CompactionResult,
  type Context,
  defineCommand,
  defineSlashCommand,
  ProviderError,
  z,
} from "mortise/extension";
import { execute, prepare } from "./_engine.ts";
import { guardSlot } from "./_state.ts";
import { cancelled } from "./_supplied.ts";
import { count } from "./_tokens.ts";

/**
 * Compacts on request: takes the conversation before the first wait, so that nothing gets in between, and ends the run.
 * @throws {CommandError} with the texts of protocol-facts §1.7. @throws {ProviderError} the summariser's failure.
 */
async function compactNow(ctx: Context, customInstructions: string | undefined) {
  const { conversation } = ctx;
  if (conversation.takenBy !== undefined) conversation.take("compact");
  if (conversation.selection.model === undefined) throw new CommandError("No model selected");
  // In this order: an abort ends what has the conversation taken.
  const ended = conversation.isStreaming
    ? conversation.abort("Interrupted by compaction", { resume: false, park: false })
    : undefined;
  const taken = conversation.take("compact");
  try {
    await ended;
    const prepared = await prepare(ctx, { reason: "manual", customInstructions, signal: taken.signal });
    const compacted = await execute(ctx, prepared);
    conversation.slot(guardSlot).set(guardSlot.initial());
    return compacted;
  } catch (error) {
    if (taken.signal.aborted || (ProviderError.is(error) && error.kind === "aborted")) throw cancelled();
    throw error;
  } finally {
    taken.release();
  }
}

const command = defineCommand({
  name: "compact",
  group: "Compaction",
  summary:
    "Replaces older messages by a summary of the model. Ends a run first; what comes in meanwhile is delivered afterwards.",
  concurrency: "concurrent",
  source: "both",
  params: z.object({ customInstructions: z.string().optional().describe("What the summary should pay attention to") }),
  result: CompactionResult,
  example: {
    params: { customInstructions: "Keep the names of all failing tests" },
    result: { summary: "## Goal\n…", firstKeptEntryId: "a1b2c3d4", tokensBefore: 171_000 },
    failure: "Nothing to compact (session too small)",
  },
  run: async (ctx, { customInstructions }) => (await compactNow(ctx, customInstructions)).result,
});

const slash = defineSlashCommand({
  name: "compact",
  description: "Replace older messages by a summary",
  argumentHint: "[what the summary should pay attention to]",
  source: "builtin",
  concurrency: "concurrent",
  async run(ctx, args) {
    const { result, tokensAfter } = await compactNow(ctx, args === "" ? undefined : args);
    ctx.output(`Compacted: about ${count(result.tokensBefore)} tokens before, ${count(tokensAfter)} now`);
  },
});

export default [command, slash];
