// Compaction as other extensions see it: what it does to a conversation, and the points where they take part. Implemented by
// extensions/compaction.
import { z } from "zod";
import type { InConversation } from "../agent/hook-points.ts";
import { defineHookPoint } from "../kernel/hooks.ts";
import type { SessionEntry } from "../session/entry.ts";

/** What a compaction gives: `data` of `compact`, `result` of `auto_compaction_end`. */
export const CompactionResult = z
  .object({
    summary: z.string(),
    shortSummary: z.string().optional(),
    firstKeptEntryId: z.string().describe("The first entry before the compaction that stays in context"),
    tokensBefore: z.number(),
    details: z.unknown().optional(),
  })
  .meta({ id: "CompactionResult" });
export type CompactionResult = z.infer<typeof CompactionResult>;

/** Why a compaction begins. The wire names the automatic ones only. */
export type CompactionReason = "manual" | "threshold" | "overflow" | "idle";

export interface CompactionPlan extends InConversation {
  readonly reason: CompactionReason;
  /** The entries a summary is to replace, oldest first. */
  readonly entries: readonly SessionEntry[];
  /** The last of `entries` that belong to a turn which goes on after the cut. */
  readonly turnPrefix: readonly SessionEntry[];
  /** The summary of the compaction before, which is replaced as well. */
  readonly previousSummary: string | undefined;
  /** Undefined when no entry is kept. */
  readonly firstKeptEntryId: string | undefined;
  /** Tokens in context now. */
  readonly tokensBefore: number;
  readonly customInstructions: string | undefined;
  /** Files that the entries read and changed, with those of earlier compactions. */
  readonly details: { readonly readFiles: readonly string[]; readonly modifiedFiles: readonly string[] };
  readonly signal: AbortSignal;
}
/** Cancels the compaction, or makes it without asking the model. */
export type CompactionAnswer =
  | { readonly cancel: true }
  | {
      readonly result: Pick<CompactionResult, "summary" | "shortSummary" | "details"> & { firstKeptEntryId?: string | undefined };
    };

export const sessionBeforeCompact = defineHookPoint<CompactionPlan, CompactionAnswer>({
  name: "sessionBeforeCompact",
  combine: "first",
  timeoutMs: 24 * 3600_000,
  summary: "Before older messages are replaced by a summary: answer with `cancel`, or with a result of your own",
});

export interface SessionCompacted extends InConversation {
  readonly reason: CompactionReason;
  readonly result: CompactionResult;
  readonly entryId: string;
  /** True when an extension supplied the result. */
  readonly fromExtension: boolean;
}
export const sessionCompacted = defineHookPoint<SessionCompacted>({
  name: "sessionCompacted",
  combine: "series",
  summary: "A summary has taken the place of older messages",
});

export interface SessionCompactionFailed extends InConversation {
  readonly reason: CompactionReason;
  readonly error: string;
  /** Cancelled by the host, an abort or an extension. */
  readonly aborted: boolean;
  /** True when an extension had supplied the result. */
  readonly fromExtension: boolean;
}
export const sessionCompactionFailed = defineHookPoint<SessionCompactionFailed>({
  name: "sessionCompactionFailed",
  combine: "series",
  summary: "A compaction that `sessionBeforeCompact` told of came to nothing; the messages are as they were",
});
