// In-context messages → what a provider accepts: every call has exactly one result directly after its message, nothing is
// empty, nothing holds lone surrogates. Pure and deterministic: the same messages give the same request bytes.
import type { AssistantContent, InputContent, ToolCall } from "../../protocol/content.ts";
import type { AgentMessage, AssistantMessage, ToolResultMessage, UserMessage } from "../../protocol/message.ts";
import { fence } from "./convert.ts";
import { isRecord } from "./entry.ts";
import { factsOf } from "./facts.ts";
import { Slices } from "./slices.ts";

/** What reaches a provider. */
export type ModelMessage = UserMessage | AssistantMessage | ToolResultMessage;

export const MISSING_RESULT_TEXT = "Interrupted: the tool call has no result";
export const EMPTY_RESULT_TEXT = "(no output)";
const MISSING_IMAGE_TEXT = "(image not available: its stored data is missing)";

const placeholders = new WeakMap<AssistantMessage, Map<string, ToolResultMessage>>();

/** Messages of a step of `prepare`: a few milliseconds. */
const PREPARED_AT_ONCE = 500;

/** One answer that made a call, and whether a result for it was met. */
interface Caller {
  readonly answer: AssistantMessage;
  result: ToolResultMessage | undefined;
}

interface Matched {
  readonly results: Map<AssistantMessage, Map<string, ToolResultMessage>>;
  readonly reach: Map<AssistantMessage, number>;
}

/**
 * - A call without result gets a placeholder error with the time stamp of its message; a second result for a call and a
 *   result without call are dropped; results are put in call order. A result belongs to the latest answer before it that made
 *   the call.
 * - Of an aborted or failed answer only answered calls, and of an aborted one its text, are kept.
 * - A call id that was used before gets a suffix, because some services refuse repeated ids.
 * Unchanged messages keep one converted object, so that callers can cache by identity.
 */
export function repairForProvider(messages: readonly AgentMessage[]): ModelMessage[] {
  return new ProviderView().repair(messages);
}

/** Stands where a message had nothing in it. One object, so that it is converted once. */
const NOTHING_SAID: UserMessage = { role: "user", content: "(empty message)", timestamp: 0 };

/** Services want a conversation to begin and to end with what is no answer; blank messages are not sent. */
export function betweenUsers(messages: readonly ModelMessage[]): ModelMessage[] {
  const before = messages[0]?.role === "user" ? [] : [NOTHING_SAID];
  const behind = messages.at(-1)?.role === "assistant" ? [NOTHING_SAID] : [];
  return [...before, ...messages, ...behind];
}

/**
 * The repaired form of a context that grows: what stands before the last answer is kept, so that a further turn costs what is new
 * and not what is there. Any array may come; what does not continue the last one is done from the start.
 */
export class ProviderView {
  /** Input whose form is settled: all before some answer. */
  #settled: AgentMessage[] = [];
  #out: ModelMessage[] = [];
  /** Call id → latest settled answer that made it. */
  #callers = new Map<string, Caller>();
  #uses = new Map<string, number>();

  repair(messages: readonly AgentMessage[]): ModelMessage[] {
    const { results } = this.#settle(messages);
    const tail: ModelMessage[] = [];
    const uses = new Uses(this.#uses);
    for (const message of messages.slice(this.#settled.length)) emit(tail, message, results, uses);
    return this.#out.concat(tail);
  }

  /** Does most of the work of `repair` beforehand without holding the event loop: for a long context that was just opened. */
  async prepare(messages: readonly AgentMessage[]): Promise<void> {
    const slices = new Slices();
    let known: AgentMessage[] | undefined;
    for (let end = this.#settled.length + PREPARED_AT_ONCE; end < messages.length; end += PREPARED_AT_ONCE) {
      // What an earlier step settled needs no second look, unless someone else came in between.
      const isOurs = known === this.#settled && known.at(-1) === messages[known.length - 1];
      this.#settle(messages.slice(0, end), isOurs || this.#continues(messages.slice(0, end)));
      known = this.#settled;
      if (slices.due) await slices.rest();
    }
  }

  /** Takes in what no later message can change any more. Gives what belongs to the messages after it. */
  #settle(messages: readonly AgentMessage[], continues = this.#continues(messages)): Matched {
    const from = this.#settled.length;
    const matched = continues ? this.#match(messages, from) : undefined;
    if (matched === undefined) {
      this.#forget();
      return this.#settle(messages);
    }
    const { results, reach } = matched;
    let end = messages.findLastIndex((message) => message.role === "assistant");
    // A result that stands behind the end may yet be taken away; where that moves the end, what is in front is looked at again.
    for (let index = from; index < end; index++) {
      const message = messages[index];
      if (message?.role !== "assistant" || (reach.get(message) ?? 0) <= end) continue;
      end = index;
      index = from - 1;
    }
    for (let index = from; index < end; index++) {
      const message = messages[index];
      if (message === undefined) break;
      emit(this.#out, message, results, this.#uses);
      if (message.role === "assistant") this.#remember(message, results.get(message));
      this.#settled.push(message);
    }
    return matched;
  }

  #continues(messages: readonly AgentMessage[]): boolean {
    return messages.length >= this.#settled.length && this.#settled.every((message, index) => message === messages[index]);
  }

  #forget(): void {
    this.#settled = [];
    this.#out = [];
    this.#callers = new Map();
    this.#uses = new Map();
  }

  #remember(answer: AssistantMessage, results: ReadonlyMap<string, ToolResultMessage> | undefined): void {
    for (const block of answer.content)
      if (block.type === "toolCall") this.#callers.set(block.id, { answer, result: results?.get(block.id) });
  }

  /**
   * Answer → call id → its first result, and → where its last result stands, for the answers from `from` on. Undefined when a result
   * changes a settled answer.
   */
  #match(messages: readonly AgentMessage[], from: number): Matched | undefined {
    const latest = new Map<string, AssistantMessage>();
    const results = new Map<AssistantMessage, Map<string, ToolResultMessage>>();
    const reach = new Map<AssistantMessage, number>();
    for (let index = from; index < messages.length; index++) {
      const message = messages[index];
      if (message?.role === "assistant") {
        for (const block of message.content) if (block.type === "toolCall") latest.set(block.id, message);
      } else if (message?.role === "toolResult") {
        const caller = latest.get(message.toolCallId);
        if (caller === undefined) {
          const settled = this.#callers.get(message.toolCallId);
          if (settled !== undefined && settled.result === undefined) return undefined;
          continue;
        }
        const found = results.get(caller) ?? new Map<string, ToolResultMessage>();
        if (!found.has(message.toolCallId)) found.set(message.toolCallId, message);
        results.set(caller, found);
        reach.set(caller, index);
      }
    }
    return { results, reach };
  }
}

/** How often ids were used, on top of counts that stay as they are. */
class Uses {
  readonly #below: ReadonlyMap<string, number>;
  readonly #own = new Map<string, number>();
  constructor(below: ReadonlyMap<string, number>) {
    this.#below = below;
  }
  get(id: string): number | undefined {
    return this.#own.get(id) ?? this.#below.get(id);
  }
  has(id: string): boolean {
    return this.#own.has(id) || this.#below.has(id);
  }
  set(id: string, count: number): void {
    this.#own.set(id, count);
  }
}

type UseCounts = Pick<Map<string, number>, "get" | "has"> & { set(id: string, count: number): unknown };

function emit(
  out: ModelMessage[],
  message: AgentMessage,
  results: ReadonlyMap<AssistantMessage, ReadonlyMap<string, ToolResultMessage>>,
  uses: UseCounts,
): void {
  if (message.role === "toolResult") return;
  const form = convertOnce(message);
  if (form === undefined) return;
  if (form.role === "assistant" && message.role === "assistant") pushAnswer(out, message, form, results.get(message), uses);
  else out.push(form);
}

function pushAnswer(
  out: ModelMessage[],
  original: AssistantMessage,
  form: AssistantMessage,
  results: ReadonlyMap<string, ToolResultMessage> | undefined,
  uses: UseCounts,
): void {
  const failed = original.stopReason === "error" || original.stopReason === "aborted";
  if (!failed && form.content.every((block) => block.type === "text")) return void out.push(form);
  const seen = new Set<string>();
  const answers: ToolResultMessage[] = [];
  let changed = false;
  const content: AssistantContent[] = [];
  for (const block of form.content) {
    if (block.type !== "toolCall") {
      content.push(block);
      continue;
    }
    const result = results?.get(block.id);
    if (seen.has(block.id) || (failed && result === undefined)) {
      changed = true;
      continue;
    }
    seen.add(block.id);
    const id = uniqueId(block.id, uses);
    changed ||= id !== block.id;
    content.push(id === block.id ? block : { ...block, id });
    const answer = (result && convertOnce(result)) ?? placeholder(original, block);
    if (answer.role === "toolResult") answers.push(id === block.id ? answer : { ...answer, toolCallId: id });
  }
  // Of a failed answer the thinking and the half text mean nothing without what came of them.
  const sound =
    original.stopReason === "error"
      ? answers.length > 0
      : content.some((block) => block.type === "text" || block.type === "toolCall");
  if (!sound && (failed || content.length === 0)) return;
  out.push(changed ? { ...form, content } : form, ...answers);
}

function uniqueId(id: string, uses: UseCounts): string {
  for (;;) {
    const count = (uses.get(id) ?? 0) + 1;
    uses.set(id, count);
    if (count === 1) return id;
    const renamed = `${id}-${count}`;
    if (!uses.has(renamed)) {
      uses.set(renamed, 1);
      return renamed;
    }
  }
}

function placeholder(message: AssistantMessage, call: ToolCall): ToolResultMessage {
  const known = placeholders.get(message) ?? new Map<string, ToolResultMessage>();
  placeholders.set(message, known);
  const made: ToolResultMessage = known.get(call.id) ?? {
    role: "toolResult",
    toolCallId: call.id,
    toolName: call.name,
    content: [{ type: "text", text: MISSING_RESULT_TEXT }],
    isError: true,
    timestamp: message.timestamp,
  };
  known.set(call.id, made);
  return made;
}

function convertOnce(message: AgentMessage): ModelMessage | undefined {
  // Messages are never changed once they are in context, so a form stays right.
  const facts = factsOf(message);
  if (facts.form === undefined) facts.form = convert(message) ?? null;
  return facts.form ?? undefined;
}

function convert(message: AgentMessage): ModelMessage | undefined {
  switch (message.role) {
    case "user":
    case "developer":
    case "custom":
      return userMessage(message.content, message);
    case "assistant":
      return answer(message);
    case "toolResult":
      return toolResult(message);
    case "bashExecution":
      return message.excludeFromContext === true ? undefined : userMessage(bashText(message), message);
    case "branchSummary":
      return userMessage(`Summary of the branch this conversation came back from:\n\n${wrapped(message.summary)}`, message);
    case "compactionSummary":
      return userMessage(
        `Summary of the conversation before this point, which was compacted:\n\n${wrapped(message.summary)}`,
        message,
      );
  }
}

/** The message itself when it is a sound user message, else a new one; undefined when there is nothing to say. */
function userMessage(content: string | InputContent[], from: AgentMessage): UserMessage | undefined {
  const clean = typeof content === "string" ? cleanText(content) : cleanBlocks(content);
  if (typeof clean === "string" ? clean.trim() === "" : clean.length === 0) return undefined;
  if (from.role === "user" && clean === from.content) return from;
  return { role: "user", content: clean, timestamp: from.timestamp };
}

function toolResult(message: ToolResultMessage): ToolResultMessage {
  const blocks = cleanBlocks(message.content);
  const content: InputContent[] = blocks.length > 0 ? blocks : [{ type: "text", text: EMPTY_RESULT_TEXT }];
  return content === message.content ? message : { ...message, content };
}

function answer(message: AssistantMessage): AssistantMessage | undefined {
  const failed = message.stopReason === "error" || message.stopReason === "aborted";
  const content = cleaned(message.content, (block) => cleanAnswerBlock(block, failed));
  if (content.length === 0) return undefined;
  return content === message.content ? message : { ...message, content };
}

function cleanAnswerBlock(block: AssistantContent, failed: boolean): AssistantContent | undefined {
  switch (block.type) {
    case "text": {
      const text = cleanText(block.text);
      if (text.trim() === "") return undefined;
      return text === block.text ? block : { type: "text", text };
    }
    case "thinking": {
      const thinking = cleanText(block.thinking);
      const signed = block.thinkingSignature !== undefined && block.thinkingSignature !== "";
      // Signed blocks count byte by byte; unsigned ones of a broken-off answer are refused by the services that sign.
      if (signed) return thinking === block.thinking ? block : undefined;
      if (failed || thinking.trim() === "") return undefined;
      return thinking === block.thinking ? block : { ...block, thinking };
    }
    case "toolCall": {
      const args = cleanValue(block.arguments);
      return args === block.arguments || !isRecord(args) ? block : { ...block, arguments: args };
    }
    default:
      return block;
  }
}

function cleanBlocks(blocks: InputContent[]): InputContent[] {
  return cleaned(blocks, (block) => {
    if (block.type === "image") {
      const missing = block.data === "" || block.data.startsWith("blob:");
      return missing ? { type: "text", text: MISSING_IMAGE_TEXT } : block;
    }
    const text = cleanText(block.text);
    if (text.trim() === "") return undefined;
    return text === block.text ? block : { ...block, text };
  });
}

/** The blocks as `clean` gives them, without those it gives undefined for. The array itself when nothing had to change. */
function cleaned<B>(blocks: B[], clean: (block: B) => B | undefined): B[] {
  let copy: B[] | undefined;
  for (const [index, block] of blocks.entries()) {
    const form = clean(block);
    if (form !== block) copy ??= blocks.slice(0, index);
    if (form !== undefined) copy?.push(form);
  }
  return copy ?? blocks;
}

const UNSAFE = /\p{Surrogate}|\u0000/gu;

/** Lone surrogates and NUL become U+FFFD: services refuse them, and the reader still sees that something stood there. */
export function cleanText(text: string): string {
  return text.isWellFormed() && !text.includes("\u0000") ? text : text.replace(UNSAFE, "\uFFFD");
}

/** The value itself when all texts and keys in it are clean. */
function cleanValue(value: unknown): unknown {
  if (typeof value === "string") return cleanText(value);
  if (Array.isArray(value)) {
    const clean = value.map(cleanValue);
    return clean.every((member, i) => member === value[i]) ? value : clean;
  }
  if (!isRecord(value)) return value;
  const members = Object.entries(value);
  const clean = members.map(([key, member]): [string, unknown] => [cleanText(key), cleanValue(member)]);
  return clean.every(([key, member], i) => key === members[i]?.[0] && member === members[i]?.[1])
    ? value
    : Object.fromEntries(clean);
}

function bashText(message: Extract<AgentMessage, { role: "bashExecution" }>): string {
  const notes: string[] = [];
  if (message.cancelled) notes.push("The command was cancelled.");
  else if (message.exitCode !== undefined && message.exitCode !== 0) notes.push(`Exit code: ${message.exitCode}`);
  if (message.truncated) {
    notes.push(
      message.fullOutputPath === undefined
        ? "The output was truncated."
        : `The output was truncated. Full output: ${message.fullOutputPath}`,
    );
  }
  const output = message.output === "" ? EMPTY_RESULT_TEXT : fence(message.output);
  return [`Ran \`${message.command}\``, output, ...notes].join("\n");
}

function wrapped(summary: string): string {
  return `<summary>\n${summary}\n</summary>`;
}
