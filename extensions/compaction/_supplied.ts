// What extensions say before a compaction: that it is not wanted, or what it gives. Their code need not be typed.
import { CommandError, type CompactionPlan, type Context, sessionBeforeCompact, untilAborted, z } from "mortise/extension";

const Supplied = z.object({
  // Nothing at all would take the place of everything that was said.
  summary: z.string().refine((text) => text.trim() !== "", "expected a text that says something"),
  shortSummary: z.string().optional(),
  firstKeptEntryId: z.string().optional(),
  details: z.unknown().optional(),
});
export type Supplied = z.infer<typeof Supplied>;

const Answer = z.looseObject({ cancel: z.unknown().optional(), result: Supplied.nullish() });

export function cancelled(): CommandError {
  return new CommandError("Compaction cancelled", "cancelled");
}

/** Undefined when nobody supplies anything. @throws {CommandError} cancelled, also while a handler is still at it; or what is wrong. */
export async function askExtensions(ctx: Context, plan: CompactionPlan): Promise<Supplied | undefined> {
  if (!ctx.hasHooks(sessionBeforeCompact)) return undefined;
  const { log } = plan.conversation;
  const given: unknown = await untilAborted(ctx.hook(sessionBeforeCompact, plan, { signal: plan.signal }), plan.signal, 0);
  if (plan.signal.aborted) throw cancelled();
  if (given === undefined || given === null) return undefined;
  const answer = Answer.safeParse(given);
  if (!answer.success) {
    const [issue] = answer.error.issues;
    const at = issue === undefined || issue.path.length === 0 ? "" : ` (${issue.path.join(".")})`;
    throw new CommandError(`An extension answered what is no compaction${at}: ${issue?.message ?? "it does not fit"}`);
  }
  if (answer.data.cancel === true) throw cancelled();
  const supplied = answer.data.result ?? undefined;
  const { firstKeptEntryId } = supplied ?? {};
  if (firstKeptEntryId !== undefined && log.entry(firstKeptEntryId) === undefined)
    throw new CommandError(`An extension wants to keep an entry that is not there: ${firstKeptEntryId}`);
  return supplied;
}
