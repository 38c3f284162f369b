// The summary of what a compaction takes out: one request to the model of the conversation, bounded in tries and in size.
import {
  type AgentMessage,
  type Context,
  estimateTokens,
  type Model,
  ProviderError,
  RetryEnabled,
  sideRequest,
} from "mortise/extension";
import { type FileLists, filesSection, withoutFiles } from "./_files.ts";
import { askFor, SYSTEM_PROMPT } from "./_prompt.ts";
import { clip, inputText, transcript } from "./_transcript.ts";

const MAX_OUTPUT_TOKENS = 13_000;
const MIN_OUTPUT_TOKENS = 512;
/** Fewer than four, so that dense text fits as well. */
const CHARS_PER_TOKEN = 3;
const UNKNOWN_WINDOW_TOKENS = 100_000;
const MAX_TRIES = 3;
const RETRY_MS = 500;
const LONGEST_WAIT_MS = 10_000;
const REQUEST_CHARS = 4000;

export interface Material {
  readonly model: Model;
  /** Replaced messages before the split turn, oldest first. */
  readonly history: readonly AgentMessage[];
  /** Replaced messages of a turn that goes on after the cut. */
  readonly turnPrefix: readonly AgentMessage[];
  readonly previousSummary: string | undefined;
  readonly customInstructions: string | undefined;
  readonly files: FileLists;
  /** Tokens the context has room for beside prompt and kept messages. */
  readonly room: number;
  readonly signal: AbortSignal;
}

/** @throws {ProviderError} when the model gave none; kind `aborted` when `signal` ended it. */
export async function summarise(ctx: Context, material: Material): Promise<string> {
  const { model } = material;
  const window = model.contextWindow || UNKNOWN_WINDOW_TOKENS;
  const output = Math.max(MIN_OUTPUT_TOKENS, Math.min(MAX_OUTPUT_TOKENS, window / 4, material.room / 2));
  const text = await ask(ctx, material, await promptOf(material, window - output), Math.floor(output));
  return `${text}${lastRequest(material)}${leftOut(material)}${filesSection(material.files)}`;
}

async function promptOf(material: Material, tokens: number): Promise<string> {
  const previousSummary = material.previousSummary && withoutFiles(material.previousSummary);
  const fixed = askFor({ ...material, previousSummary, transcript: "", turnPrefix: "" }).length + SYSTEM_PROMPT.length + 600;
  const chars = Math.max(1000, tokens * CHARS_PER_TOKEN - fixed);
  const turnPrefix = await transcript(material.turnPrefix, material.history.length === 0 ? chars : chars / 2);
  const history = await transcript(material.history, chars - turnPrefix.length);
  return askFor({ ...material, previousSummary, transcript: history, turnPrefix });
}

async function ask(ctx: Context, { model, signal }: Material, prompt: string, maxTokens: number): Promise<string> {
  const messages: AgentMessage[] = [{ role: "user", content: prompt, timestamp: Date.now() }];
  for (let attempt = 1; ; attempt++) {
    try {
      const request = { model, systemPrompt: [SYSTEM_PROMPT], messages, toolChoice: "none" as const, maxTokens, signal };
      const { text, message } = await sideRequest(ctx, request);
      if (text === "") throw new ProviderError("The model gave no summary", "fatal");
      return message.stopReason === "length" ? `${text}\n[The summary was cut off at the output limit.]` : text;
    } catch (error) {
      const again = ProviderError.is(error) && error.kind === "retryable" && attempt < MAX_TRIES && ctx.setting(RetryEnabled);
      if (!again || signal.aborted) throw error;
      const wait = Math.max(error.retryAfterMs ?? 0, RETRY_MS * 2 ** (attempt - 1));
      if (wait > LONGEST_WAIT_MS) throw error;
      await pause(wait, signal);
    }
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(new ProviderError("Aborted", "aborted"));
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, ms);
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
  });
}

/** What the user wants now does not depend on how well the model sums up. */
function lastRequest({ history, turnPrefix }: Material): string {
  const request = turnPrefix.findLast((message) => message.role === "user");
  if (request?.role !== "user") return "";
  const text = inputText(request.content).trim();
  if (text === "") return "";
  // At most half of what is replaced, or there would be nothing gained.
  const half = [...history, ...turnPrefix].reduce((sum, message) => sum + estimateTokens(message), 0) * 2;
  return `\n\n## The user's latest request, word for word\n${clip(text, Math.min(REQUEST_CHARS, half))}`;
}

/** Results that would not have fitted by themselves: the model must know, or it asks for the same again. */
function leftOut({ history, turnPrefix, room }: Material): string {
  const huge = [...history, ...turnPrefix].filter(
    (message) => message.role === "toolResult" && estimateTokens(message) > Math.max(room, MIN_OUTPUT_TOKENS),
  );
  const lines = huge.map((message) =>
    message.role === "toolResult"
      ? `- ${message.toolName}: ${inputText(message.content).length} characters. Ask for a smaller part.`
      : "",
  );
  return lines.length === 0 ? "" : `\n\n## Results too large to keep\n${lines.join("\n")}`;
}
