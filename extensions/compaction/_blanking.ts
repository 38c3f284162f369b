// Old outputs of tools, left out of what is sent: cheaper than a summary, and what was said stays (agent-semantics §2.10). Which
// ones is kept in the session, so that a resumed one sends the same bytes; the outputs themselves stay in it and with the host.
import {
  type AgentMessage,
  type Context,
  type ConversationHandle,
  defineSlot,
  estimateTokens,
  messageOf,
  type SessionEntry,
  type ToolResultMessage,
  z,
} from "mortise/extension";
import { blankOutputs, blankProtectTokens, blankSavedTokens } from "./settings.ts";

/** Shorter outputs are not worth the line that stands for them. */
const MIN_OUTPUT_TOKENS = 100;

export const blankedSlot = defineSlot({
  name: "compaction.blanked",
  persist: true,
  schema: z
    .object({
      /** Outputs in front of this entry are blanked. */
      before: z.string(),
      /** Time stamp of the newest answer then: its count is of a context that held them. */
      answeredAt: z.number(),
      /** Tokens that left the context then, as the model counts them. */
      saved: z.number(),
    })
    .optional(),
  initial: () => undefined,
});
type Blanked = NonNullable<z.infer<typeof blankedSlot.schema>>;

interface Forms {
  readonly value: Blanked;
  readonly byMessage: ReadonlyMap<AgentMessage, AgentMessage>;
  /** Estimated tokens that they do not take. */
  readonly saved: number;
}

/** By the messages of a context: the array grows at its end only, and a blanked message stays blanked. */
const known = new WeakMap<readonly AgentMessage[], Forms>();

function formsOf(conversation: ConversationHandle): Forms | undefined {
  const value = conversation.slot(blankedSlot).get();
  if (value === undefined) return undefined;
  const { messages } = conversation;
  let forms = known.get(messages);
  if (forms?.value !== value) {
    forms = makeForms(conversation.log.contextEntries(), value);
    known.set(messages, forms);
  }
  return forms;
}

function makeForms(entries: readonly SessionEntry[], value: Blanked): Forms {
  const byMessage = new Map<AgentMessage, AgentMessage>();
  let saved = 0;
  for (const entry of entries.slice(0, Math.max(0, indexOf(entries, value.before)))) {
    const message = messageOf(entry);
    if (!isLong(message)) continue;
    const blank = blankForm(message);
    byMessage.set(message, blank);
    saved += estimateTokens(message) - estimateTokens(blank);
  }
  return { value, byMessage, saved };
}

function indexOf(entries: readonly SessionEntry[], id: string): number {
  return entries.findIndex((entry) => entry.id === id);
}

function isLong(message: AgentMessage | undefined): message is ToolResultMessage {
  return message?.role === "toolResult" && estimateTokens(message) > MIN_OUTPUT_TOKENS;
}

function blankForm(message: ToolResultMessage): ToolResultMessage {
  const text = `[An output of about ${estimateTokens(message)} tokens was left out to save room. Call ${message.toolName} again if it is needed.]`;
  return { ...message, content: [{ type: "text", text }] };
}

/** The messages as they are sent; undefined when nothing is blanked. */
export function withBlanks(conversation: ConversationHandle, messages: readonly AgentMessage[]): AgentMessage[] | undefined {
  const forms = formsOf(conversation);
  if (forms === undefined || forms.byMessage.size === 0) return undefined;
  return messages.map((message) => forms.byMessage.get(message) ?? message);
}

/** What the blanked outputs do not take: in estimated tokens, and of the count of the newest answer. */
export function blankedTokens(conversation: ConversationHandle): { estimated: number; counted: number } {
  const forms = formsOf(conversation);
  if (forms === undefined) return { estimated: 0, counted: 0 };
  const isOld = conversation.lastAssistant()?.timestamp === forms.value.answeredAt;
  return { estimated: forms.saved, counted: isOld ? forms.value.saved : 0 };
}

/**
 * Blanks the outputs behind the newest messages when that frees at least `needed` tokens. Gives what it frees, 0 when it is
 * not done. `scale`: how many tokens of the model an estimated one stands for.
 */
export function blankOutputsFor(ctx: Context, needed: number, scale: number): number {
  const { conversation } = ctx;
  if (!ctx.setting(blankOutputs)) return 0;
  const entries = conversation.log.contextEntries();
  const already = formsOf(conversation)?.byMessage;
  let protectedTokens = ctx.setting(blankProtectTokens);
  let before: string | undefined;
  let saved = 0;
  for (let index = entries.length - 1; index >= 0; index--) {
    const entry = entries[index];
    const message = entry && messageOf(entry);
    if (entry === undefined || message === undefined) continue;
    const blank = already?.get(message);
    if (before === undefined) {
      protectedTokens -= estimateTokens(blank ?? message) * scale;
      if (protectedTokens < 0) before = entry.id;
    } else if (blank === undefined && isLong(message)) {
      saved += (estimateTokens(message) - estimateTokens(blankForm(message))) * scale;
    }
  }
  if (before === undefined || saved < Math.max(needed, ctx.setting(blankSavedTokens))) return 0;
  const answeredAt = conversation.lastAssistant()?.timestamp ?? 0;
  conversation.slot(blankedSlot).set({ before, answeredAt, saved: Math.floor(saved) });
  return saved;
}
