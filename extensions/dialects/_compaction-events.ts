// `session_before_compact`, `session_compact` and `session_compact_failed`. `willRetry` tells of the answer that overflowed.
import {
  type CompactionAnswer,
  type CompactionPlan,
  defineHook,
  messageOf,
  sessionBeforeCompact,
  sessionCompacted,
  sessionCompactionFailed,
} from "mortise/extension";
import { call } from "./_events.ts";
import { storable } from "./_results.ts";
import type { Handler, Runtime } from "./_runtime.ts";
import { isObject } from "./_schema.ts";

/** A handler may cancel, or give the summary itself as `compaction`. */
export function beforeCompactHook(runtime: Runtime, handler: Handler) {
  return defineHook(
    sessionBeforeCompact,
    async (plan, ctx) => {
      const answer = await call(runtime, ctx, handler, {
        type: "session_before_compact",
        preparation: preparationOf(plan),
        branchEntries: plan.conversation.log.path(),
        reason: plan.reason,
        willRetry: plan.reason === "overflow",
        signal: plan.signal,
        ...(plan.customInstructions === undefined ? {} : { customInstructions: plan.customInstructions }),
      });
      return answer === undefined ? undefined : toAnswer(answer);
    },
    { attachedOnly: true },
  );
}

function preparationOf(plan: CompactionPlan): Record<string, unknown> {
  const prefix = new Set(plan.turnPrefix);
  const messages = (entries: CompactionPlan["entries"]) => entries.flatMap((entry) => messageOf(entry) ?? []);
  return {
    firstKeptEntryId: plan.firstKeptEntryId,
    messagesToSummarize: messages(plan.entries.filter((entry) => !prefix.has(entry))),
    turnPrefixMessages: messages(plan.turnPrefix),
    isSplitTurn: plan.turnPrefix.length > 0,
    tokensBefore: plan.tokensBefore,
    previousSummary: plan.previousSummary,
    fileOps: {
      read: new Set(plan.details.readFiles),
      written: new Set(plan.details.modifiedFiles),
      edited: new Set<string>(),
    },
  };
}

function toAnswer(answer: Record<string, unknown>): CompactionAnswer | undefined {
  if (answer["cancel"] === true) return { cancel: true };
  const { compaction } = answer;
  if (!isObject(compaction) || typeof compaction["summary"] !== "string") return undefined;
  const { summary, firstKeptEntryId, shortSummary, details } = compaction;
  return {
    result: {
      summary,
      ...(typeof shortSummary === "string" ? { shortSummary } : {}),
      ...(typeof firstKeptEntryId === "string" ? { firstKeptEntryId } : {}),
      ...(details === undefined ? {} : { details: storable(details) }),
    },
  };
}

export function compactedHook(runtime: Runtime, handler: Handler) {
  return defineHook(
    sessionCompacted,
    async ({ conversation, entryId, fromExtension, reason }, ctx) => {
      const compactionEntry = conversation.log.entry(entryId);
      const willRetry = reason === "overflow";
      await call(runtime, ctx, handler, { type: "session_compact", compactionEntry, fromExtension, reason, willRetry });
    },
    { attachedOnly: true },
  );
}

export function compactionFailedHook(runtime: Runtime, handler: Handler) {
  return defineHook(
    sessionCompactionFailed,
    async ({ reason, error, aborted, fromExtension }, ctx) => {
      const told = aborted ? {} : { errorMessage: error };
      await call(runtime, ctx, handler, {
        type: "session_compact_failed",
        reason,
        ...told,
        aborted,
        willRetry: false,
        fromExtension,
      });
    },
    { attachedOnly: true },
  );
}
