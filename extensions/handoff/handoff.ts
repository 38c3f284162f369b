import {
  CommandError,
  type Context,
  type ConversationHandle,
  Conversations,
  defineCommand,
  defineSlashCommand,
  Models,
  ProviderError,
  sessionBeforeSwitch,
  sessionSwitched,
  type Taken,
  untilAborted,
  z,
} from "mortise/extension";
import { seed, writeDocument } from "./_document.ts";
import { savedDocument } from "./_save.ts";

const MIN_MESSAGES = 2;

interface HandedOff {
  readonly next: ConversationHandle;
  /** Where the account was saved, if that is on. */
  readonly savedPath: string | undefined;
}

/**
 * Goes on in a new session that begins with the model's account of this one. Null when an extension kept the session or the
 * model wrote nothing. @throws {CommandError} with the texts of protocol-facts §1.9. @throws {ProviderError} the model's failure.
 */
async function handOff(ctx: Context, customInstructions: string | undefined): Promise<HandedOff | null> {
  const { conversation } = ctx;
  if (conversation.isStreaming) throw new CommandError("Cannot hand off while a response is in progress", "busy");
  const taken = conversation.take("handoff");
  try {
    const document = await untilAborted(documentOf(ctx, customInstructions, taken.signal), taken.signal, 0);
    if (document === undefined) throw cancelled();
    if (document === null || document === "") return null;
    const savedPath = await savedDocument(ctx, document);
    if (taken.signal.aborted || !conversation.isAttached) throw cancelled();
    return { next: await switchTo(ctx, document, taken), savedPath };
  } catch (error) {
    if (taken.signal.aborted || (ProviderError.is(error) && error.kind === "aborted")) throw cancelled();
    throw error;
  } finally {
    taken.release();
  }
}

async function documentOf(ctx: Context, customInstructions: string | undefined, signal: AbortSignal): Promise<string | null> {
  const { conversation } = ctx;
  const { messages } = conversation;
  // A summary stands for many.
  const isEmpty = messages.length < MIN_MESSAGES && messages[0]?.role !== "compactionSummary";
  if (isEmpty) throw new CommandError("Nothing to hand off (no messages yet)");
  const { model } = conversation.selection;
  if (model === undefined) throw new CommandError("No model selected for handoff");
  if (ctx.tryUse(Models)?.hasKey(model.provider) === false && needsKey(ctx, model.api))
    throw new CommandError(`No API key for ${model.provider}`);
  const answer = await ctx.hook(sessionBeforeSwitch, { conversation, reason: "handoff", target: undefined }, { signal });
  if (signal.aborted) throw cancelled();
  if (answer?.cancel === true) return null;
  return writeDocument(ctx, model, customInstructions, signal);
}

function needsKey(ctx: Context, api: string): boolean {
  return ctx.registry.get("provider", api)?.definition.needsKey !== false;
}

async function switchTo(ctx: Context, document: string, taken: Taken): Promise<ConversationHandle> {
  const { conversation } = ctx;
  const conversations = ctx.use(Conversations);
  const previousFile = conversation.log.file;
  const next = conversations.create({ parentSession: previousFile ?? conversation.log.id });
  conversations.attach(next);
  await next.submitCustom({ customType: "handoff", content: seed(document), display: true, attribution: "agent" });
  await ctx
    .derive({ locals: { conversation: next } })
    .hook(sessionSwitched, { conversation: next, reason: "handoff", previousFile });
  taken.transfer(next);
  await conversations.close(conversation);
  return next;
}

function cancelled(): CommandError {
  return new CommandError("Handoff cancelled", "cancelled");
}

const command = defineCommand({
  name: "handoff",
  group: "Session",
  summary: "Goes on in a new session that begins with the model's account of this one; what is queued moves along.",
  concurrency: "concurrent",
  source: "both",
  params: z.object({ customInstructions: z.string().optional().describe("What the account should pay attention to") }),
  result: z
    .object({ savedPath: z.string().optional() })
    .nullable()
    .describe("null when an extension kept the session or the model wrote nothing"),
  example: { params: {}, result: {}, failure: "Cannot hand off while a response is in progress" },
  async run(ctx, { customInstructions }) {
    const done = await handOff(ctx, customInstructions);
    if (done === null) return null;
    return done.savedPath === undefined ? {} : { savedPath: done.savedPath };
  },
});

const slash = defineSlashCommand({
  name: "handoff",
  description: "Go on in a new session that begins with an account of this one",
  argumentHint: "[what the account should pay attention to]",
  source: "builtin",
  concurrency: "concurrent",
  async run(ctx, args) {
    const done = await handOff(ctx, args === "" ? undefined : args);
    if (done === null) return ctx.output("The session stays: an extension kept it, or the model wrote nothing");
    // The conversation that the command was typed into is closed by now.
    const saved = done.savedPath === undefined ? "" : `, which is also in ${done.savedPath}`;
    done.next.emitRaw({
      type: "command_output",
      text: `This is a new session; it begins with an account of the one before${saved}`,
    });
  },
});

export default [command, slash];
