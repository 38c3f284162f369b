// The summary of what a compaction takes out, by the model of the conversation: in one request, or piece by piece when that is more
// than one takes. Bounded in requests and in size.
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
import { clip, cutTranscript, inputText, lengthOfPieces, transcript } from "./_transcript.ts";

const MAX_OUTPUT_TOKENS = 13_000;
const MIN_OUTPUT_TOKENS = 512;
/** Fewer than four, so that dense text fits as well. */
const CHARS_PER_TOKEN = 3;
const UNKNOWN_WINDOW_TOKENS = 100_000;
/** Requests for one summary; of a history that would take more, messages are shortened. */
const MAX_PIECES = 16;
const MIN_PIECE_CHARS = 1000;
/** For what a service adds around a request. */
const SPARE_CHARS = 200;
/** How often pieces are halved because the service found one too long, and down to which size that is worth a request. */
const MAX_HALVINGS = 2;
const MIN_HALVED_CHARS = 4000;
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
  /** How many tokens of the model an estimated one stands for. */
  readonly scale: number;
  readonly signal: AbortSignal;
}

/** What one request is given. */
interface Piece {
  readonly transcript: string;
  readonly turnPrefix: string;
}

/** @throws {ProviderError} when the model gave none; kind `aborted` when `signal` ended it. */
export async function summarise(ctx: Context, material: Material): Promise<string> {
  const window = material.model.contextWindow || UNKNOWN_WINDOW_TOKENS;
  const output = Math.floor(Math.max(MIN_OUTPUT_TOKENS, Math.min(MAX_OUTPUT_TOKENS, window / 4, material.room / 2)));
  const charsPerToken = Math.min(CHARS_PER_TOKEN, 4 / material.scale);
  const limits = { input: (window - output) * charsPerToken, notes: Math.floor((output * 4) / material.scale), output };
  const text = await notesOf(ctx, material, limits);
  return `${text}${lastRequest(material)}${leftOut(material)}${filesSection(material.files)}`;
}

/** Characters a request may have and of these notes from before, and tokens of its answer. */
interface Limits {
  readonly input: number;
  readonly notes: number;
  readonly output: number;
}

/** The notes of one piece go into the request for the next, so that the last ones stand for everything. */
async function notesOf(ctx: Context, material: Material, limits: Limits): Promise<string> {
  const { customInstructions } = material;
  let { notes, pieces } = await piecesOf(material, limits);
  let { output } = limits;
  let halvings = 0;
  for (let number = 1; ; number++) {
    const [piece] = pieces;
    if (piece === undefined) return notes ?? "";
    const of = number + pieces.length - 1;
    const place = of === 1 ? undefined : { number, of };
    try {
      const prompt = askFor({ ...piece, previousSummary: notes, customInstructions, piece: place });
      const answer = await ask(ctx, material, prompt, output);
      pieces = pieces.slice(1);
      // An answer beyond its limit must not take the room of the next piece.
      notes = pieces.length === 0 ? answer : clip(answer, Math.max(MIN_PIECE_CHARS, limits.notes));
    } catch (error) {
      const length = piece.transcript.length + piece.turnPrefix.length;
      const tooLong = ProviderError.is(error) && error.kind === "overflow" && length > MIN_HALVED_CHARS;
      if (!tooLong || ++halvings > MAX_HALVINGS) throw error;
      pieces = pieces.flatMap((each) => cutPieces(each, Math.ceil(length / 2)));
      // Some services count the answer that is allowed for.
      output = Math.max(MIN_OUTPUT_TOKENS, Math.floor(output / 2));
      number--;
    }
  }
}

async function piecesOf(material: Material, limits: Limits): Promise<{ notes: string | undefined; pieces: readonly Piece[] }> {
  const { customInstructions } = material;
  const previous = material.previousSummary && withoutFiles(material.previousSummary);
  const fixed =
    askFor({ transcript: "", turnPrefix: "-", previousSummary: "", customInstructions, piece: { number: 1, of: 2 } }).length +
    SYSTEM_PROMPT.length +
    SPARE_CHARS;
  const free = limits.input - fixed;
  // Notes that a larger model made may be too long to be given beside a transcript, or all that there is to sum up.
  const beside = material.history.length + material.turnPrefix.length > 0;
  const fits = previous !== undefined && previous.length <= Math.max(limits.notes, free / 2);
  const notes = beside && fits ? previous : undefined;
  const older: AgentMessage[] =
    previous === undefined || notes !== undefined
      ? []
      : [{ role: "compactionSummary", summary: previous, tokensBefore: 0, timestamp: 0 }];
  const chars = Math.max(MIN_PIECE_CHARS, Math.floor(free - Math.max(limits.notes, notes?.length ?? 0)));
  const history = [...older, ...material.history];
  // The newest messages first: at most half of the requests if there are older ones.
  const forTurn = lengthOfPieces(history.length === 0 ? MAX_PIECES : MAX_PIECES / 2, chars);
  const turnPrefix = await transcript(material.turnPrefix, forTurn);
  const rest = MAX_PIECES - cutTranscript(turnPrefix, chars).length;
  const whole = { transcript: await transcript(history, lengthOfPieces(rest, chars)), turnPrefix };
  const atOnce = whole.transcript.length + whole.turnPrefix.length <= Math.max(chars, free - (notes?.length ?? 0));
  return { notes, pieces: atOnce ? [whole] : cutPieces(whole, chars) };
}

/** Pieces of at most `chars`; the end of the history and the begin of the turn share one when they fit. */
function cutPieces({ transcript: history, turnPrefix }: Piece, chars: number): Piece[] {
  const pieces = cutTranscript(history, chars).map((text) => ({ transcript: text, turnPrefix: "" }));
  const turn = cutTranscript(turnPrefix, chars);
  const last = pieces.at(-1);
  const [first] = turn;
  if (last !== undefined && first !== undefined && last.transcript.length + first.length <= chars) {
    last.turnPrefix = first;
    turn.shift();
  }
  return [...pieces, ...turn.map((text) => ({ transcript: "", turnPrefix: text }))];
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
