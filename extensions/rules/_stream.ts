// Rules that watch the stream: cutting an answer off, and telling a rule later.
import type {
  AnswerStarting,
  Context,
  ConversationHandle,
  CustomMessage,
  Interruption,
  ToolFinishedValue,
  TurnEnded,
} from "mortise/extension";
import type { Rule } from "./_rule.ts";
import { type ForeignRecords, mayTell, recordTold, Turns } from "./_state.ts";
import { type Match, RuleWatch } from "./_watch.ts";
import { ContextMode, InterruptSetting, RepeatGap, RepeatMode } from "./settings.ts";
import ttsrTriggered from "./ttsr-triggered.ts";

/** The answer a conversation is getting. */
interface Current {
  readonly watch: RuleWatch;
  /** Rules to be told later. */
  readonly pending: Match[];
}

export class StreamRules {
  readonly #rules: () => readonly Rule[];
  readonly #foreign: ForeignRecords;
  readonly #tooSlow: (rule: Rule, ms: number) => void;
  readonly #current = new WeakMap<ConversationHandle, Current>();

  constructor(rules: () => readonly Rule[], foreign: ForeignRecords, tooSlow: (rule: Rule, ms: number) => void) {
    this.#rules = rules;
    this.#foreign = foreign;
    this.#tooSlow = tooSlow;
  }

  answerStarting(value: AnswerStarting, ctx: Context): AnswerStarting {
    const { conversation } = value;
    const may = mayTell(conversation, this.#foreign, { mode: ctx.setting(RepeatMode), gap: ctx.setting(RepeatGap) });
    const rules = this.#rules().filter(({ payload }) => may(payload.name));
    this.#current.delete(conversation);
    if (rules.length === 0) return value;
    const watch = new RuleWatch({
      rules,
      interruptMode: ctx.setting(InterruptSetting),
      cwd: conversation.cwd,
      tooSlow: this.#tooSlow,
    });
    const current: Current = { watch, pending: [] };
    this.#current.set(conversation, current);
    const keep = ctx.setting(ContextMode) === "keep";
    const answerWatch = {
      delta: (delta: Parameters<RuleWatch["take"]>[0]) => this.#take(conversation, current, watch.take(delta), keep),
    };
    return { ...value, watches: [...value.watches, answerWatch] };
  }

  #take(conversation: ConversationHandle, current: Current, matches: Match[], keep: boolean): Interruption | undefined {
    if (matches.length === 0) return undefined;
    conversation.emit(ttsrTriggered, { rules: matches.map(({ rule }) => rule.payload) });
    if (!matches.some((match) => match.interrupts)) {
      current.pending.push(...matches);
      return undefined;
    }
    // What was to be told later about an answer that is cut off is told now as well.
    const rules = [...current.pending.splice(0), ...matches].map(({ rule }) => rule);
    recordTold(
      conversation,
      rules.map(({ payload }) => payload.name),
    );
    return {
      reason: `Cut off by rule ${rules.map(({ payload }) => payload.name).join(", ")}`,
      keep,
      messages: [injection(rules, "Your answer was cut off, because it goes against what the user laid down. Answer again.")],
    };
  }

  /** A rule about a call stands in front of the call's result. */
  toolFinished(value: ToolFinishedValue): ToolFinishedValue {
    const current = this.#current.get(value.conversation);
    const own = current?.pending.filter(({ toolCallId }) => toolCallId === value.toolCallId) ?? [];
    if (current === undefined || own.length === 0) return value;
    for (const match of own) current.pending.splice(current.pending.indexOf(match), 1);
    const rules = own.map(({ rule }) => rule);
    recordTold(
      value.conversation,
      rules.map(({ payload }) => payload.name),
    );
    const reminder = { type: "text" as const, text: `${textOf(rules, "A rule of the user's about this call:")}\n` };
    return { ...value, result: { ...value.result, content: [reminder, ...value.result.content] } };
  }

  /** The rest follows the turn. */
  turnEnded({ conversation, message, signal }: TurnEnded): void {
    const current = this.#current.get(conversation);
    this.#current.delete(conversation);
    if (signal.aborted || message.stopReason === "error" || message.stopReason === "aborted") return;
    conversation.slot(Turns).update((turns) => ({ ...turns, count: turns.count + 1 }));
    if (current === undefined) return;
    const late = current.watch.end();
    if (late.length > 0) conversation.emit(ttsrTriggered, { rules: late.map(({ rule }) => rule.payload) });
    const rules = [...current.pending, ...late].map(({ rule }) => rule);
    if (rules.length === 0) return;
    recordTold(
      conversation,
      rules.map(({ payload }) => payload.name),
    );
    conversation.queue.add("steering", injection(rules, "What you just said goes against what the user laid down."));
  }
}

function injection(rules: readonly Rule[], lead: string): CustomMessage {
  return {
    role: "custom",
    customType: "ttsr-injection",
    content: textOf(rules, lead),
    display: false,
    attribution: "agent",
    details: { rules: rules.map(({ payload }) => payload.name) },
    timestamp: Date.now(),
  };
}

function textOf(rules: readonly Rule[], lead: string): string {
  const texts = rules.map(({ payload }) => `<rule name="${payload.name}">\n${payload.content}\n</rule>`);
  return `${lead}\n${texts.join("\n")}`;
}
