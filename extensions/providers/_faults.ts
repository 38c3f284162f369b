// One reading of everything that can go wrong with a request: what it means for the run, how long to wait, and a text without
// secrets. The kind decides between retry, compaction and giving up, so 429 is never an overflow (agent-semantics §12.30).
import { errorMessage, isAbort, ProviderError, type ProviderErrorKind, z } from "mortise/extension";
import { redact } from "./_redact.ts";

export interface FaultSource {
  /** The signal of the request, not of the connection. */
  signal: AbortSignal;
  /** Set when our own limit on silence ended the connection. */
  idle?: ProviderError | undefined;
  secrets: readonly string[];
  /** For texts: where the request went. */
  baseUrl: string;
}

/** Not `instanceof`: the fetch of a proxied request brings its own class. */
function hasGet(value: unknown): boolean {
  return typeof value === "object" && value !== null && "get" in value && typeof value.get === "function";
}

/** What the SDKs' API errors have in common. */
const ApiError = z.object({
  status: z.number().optional(),
  headers: z.custom<Headers>(hasGet).optional(),
  error: z.unknown().optional(),
});
/** `{error: {type, code, message}}` of both services; the OpenAI SDK hands out the inner object. */
const ErrorInfo = z.object({
  type: z.string().nullish(),
  code: z.union([z.string(), z.number()]).nullish(),
  message: z.string().nullish(),
});
type ErrorInfo = z.infer<typeof ErrorInfo>;
const ErrorBody = z.union([
  z.object({ error: ErrorInfo }).transform((body) => body.error),
  z.object({ error: z.string() }).transform((body): ErrorInfo => ({ message: body.error })),
  z.string().transform((message): ErrorInfo => ({ message })),
  ErrorInfo,
]);

/** A failure that a service reports inside an answer it began well. */
export class FailureInBody extends Error {
  /** As the SDKs hand out the error of a failure event. */
  readonly error: unknown;
  constructor(error: unknown) {
    super("The service reported a failure");
    this.error = error;
  }
}

const overflowTexts =
  /prompt is too long|input (?:is )?too long|exceeds? (?:the )?(?:model'?s? )?(?:maximum )?context|context[ _](?:length|window|size)[ _](?:has been )?exceeded|maximum context length|context limit|input token count|too many (?:input )?tokens|exceeds the (?:available )?context size|greater than the context length|context window exceeds|model token limit|prompt exceeds max|request_too_large|string too long|reduce the length of (?:the )?messages|maximum prompt length/i;
const rateTexts = /rate limit|too many requests|requests per|tokens per (?:minute|day)|tpm|rpm/i;
const quotaTexts =
  /insufficient[_ ]quota|credit balance|billing|exceeded your current quota|usage limit|payment required|out of credits|spending limit/i;
const certificateCodes = /^(?:CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_(?:GET|VERIFY)|ERR_TLS)/;

/** Turns what was thrown into the last event of a stream. */
export function fault(error: unknown, source: FaultSource): ProviderError {
  if (source.signal.aborted) return new ProviderError("Request was aborted", "aborted");
  if (source.idle) return source.idle;
  const own = causes(error).find((cause) => ProviderError.is(cause));
  if (ProviderError.is(own)) return clean(own, source);
  const api = ApiError.safeParse(error);
  const status = api.success ? api.data.status : undefined;
  // Before a text is cut or its white space changed: a secret would not be recognised any more.
  const say: Say = (text) => shorten(redact(text, source.secrets));
  if (api.success && status !== undefined) return clean(fromStatus(error, status, api.data, say), source);
  // A failure event of which nothing can be read is still one, and no fault of the request.
  if (api.success && api.data.error !== undefined) {
    return clean(fromStream(ErrorBody.safeParse(api.data.error).data ?? {}, say), source);
  }
  return clean(fromConnection(error, source, say), source);
}

/** The text of a failure without secrets, in one line of bounded length. */
type Say = (text: string) => string;

function clean(error: ProviderError, source: FaultSource): ProviderError {
  const message = redact(error.message, source.secrets);
  // No cause: it would carry the unredacted text into logs.
  return new ProviderError(message, error.kind, { status: error.status, retryAfterMs: error.retryAfterMs });
}

function fromStatus(error: unknown, status: number, api: z.infer<typeof ApiError>, say: Say): ProviderError {
  const body = ErrorBody.safeParse(api.error);
  const info = body.success ? body.data : undefined;
  const text = info?.message || say(errorMessage(error));
  const type = [info?.type, info?.code].filter(Boolean).join(" ");
  const judged = kindOfStatus(status, `${type} ${text}`, info === undefined && /no body/.test(errorMessage(error)));
  // A limit that waiting does not lift: the services say so beside it.
  const isHopeless = status === 429 && api.headers?.get("x-should-retry") === "false";
  const kind = isHopeless && judged === "retryable" ? "quota" : judged;
  const message = info?.message ? `${status} ${info.type ?? info.code ?? "error"}: ${say(info.message)}` : text;
  const retryAfterMs = kind === "retryable" || kind === "quota" ? waitHint(api.headers) : undefined;
  return new ProviderError(message, kind, { status, retryAfterMs });
}

function kindOfStatus(status: number, text: string, empty: boolean): ProviderErrorKind {
  if (status === 429) return quotaTexts.test(text) ? "quota" : "retryable";
  if (status === 402) return "quota";
  if (status === 400 && quotaTexts.test(text)) return "quota";
  if (status === 401 || status === 403) return "auth";
  if (status === 413) return "overflow";
  if (status === 400 || status === 422) return empty || overflowTexts.test(text) ? "overflow" : "fatal";
  if (status === 408 || status === 409 || status === 425) return "retryable";
  if (status >= 500 && status !== 501) {
    // llama.cpp and others report a full context with status 500.
    return overflowTexts.test(text) && !rateTexts.test(text) ? "overflow" : "retryable";
  }
  return "fatal";
}

/** A failure event inside a stream; there is no status any more. */
function fromStream(info: ErrorInfo, say: Say): ProviderError {
  const word = String(info.type ?? info.code ?? "error");
  const text = say(info.message || "the service reported a failure without words");
  const words = `${word} ${info.code ?? ""}`;
  const all = `${words} ${text}`;
  let kind: ProviderErrorKind = "retryable";
  if (rateTexts.test(all) && !quotaTexts.test(all)) kind = "retryable";
  else if (overflowTexts.test(all)) kind = "overflow";
  else if (quotaTexts.test(all) || /\b402\b/.test(words)) kind = "quota";
  else if (/authentication|permission|invalid_api_key|\b40[13]\b/i.test(words)) kind = "auth";
  else if (/invalid_request|bad_?request|not_?found|content_filter|\b4(?:0[04]|22)\b/i.test(words)) kind = "fatal";
  return new ProviderError(`${word}: ${text}`, kind);
}

function fromConnection(error: unknown, source: FaultSource, say: Say): ProviderError {
  const chain = causes(error);
  if (chain.some((cause) => cause instanceof SyntaxError)) {
    return new ProviderError("The service sent a malformed event", "retryable");
  }
  const codes = chain.map((cause) => (cause as { code?: unknown }).code).filter((code) => typeof code === "string");
  const deepest = chain.at(-1) ?? error;
  const where = hostOf(source.baseUrl);
  if (codes.some((code) => certificateCodes.test(code))) {
    return new ProviderError(`Cannot trust the certificate of ${where}: ${errorMessage(deepest)}`, "fatal");
  }
  if (codes.some((code) => /^ERR_SSL_WRONG_VERSION|^EPROTO$/.test(code))) {
    return new ProviderError(`${where} speaks no TLS: check whether the base URL "${source.baseUrl}" means http`, "fatal");
  }
  if (chain.some((cause) => errorMessage(cause) === "bad port")) {
    return new ProviderError(`The base URL "${source.baseUrl}" has a port that is not for web requests`, "fatal");
  }
  if (codes.includes("UND_ERR_INVALID_ARG")) {
    return new ProviderError(`Request to ${where} failed: ${say(errorMessage(deepest))}`, "fatal");
  }
  if (codes.includes("ERR_INVALID_URL") || chain.some((cause) => /invalid url/i.test(errorMessage(cause)))) {
    return new ProviderError(`The base URL "${source.baseUrl}" is not a URL`, "fatal");
  }
  const text = [...new Set(chain.map(errorMessage))].join(": ");
  const name = chain.map((cause) => (cause as { name?: unknown }).name).join(" ");
  const isNetwork =
    codes.length > 0 ||
    isAbort(error) ||
    /APIConnection|AbortError|TimeoutError|SocketError/.test(name) ||
    /terminated|fetch failed|socket|network|connection|other side closed|premature|timed? ?out|aborted/i.test(text);
  if (!isNetwork) return new ProviderError(`Request to ${where} failed: ${say(text)}`, "fatal");
  const detail = errorMessage(deepest) === "terminated" ? "the connection broke off" : errorMessage(deepest);
  return new ProviderError(`Connection to ${where} failed: ${say(detail)}`, "retryable");
}

/** The error and its causes, outermost first. */
function causes(error: unknown): unknown[] {
  const chain: unknown[] = [];
  for (let next = error; next !== undefined && next !== null && chain.length < 10; next = (next as { cause?: unknown }).cause) {
    chain.push(next);
    if (next instanceof AggregateError && next.errors.length > 0) chain.push(next.errors[0]);
  }
  return chain;
}

function hostOf(baseUrl: string): string {
  return URL.canParse(baseUrl) ? new URL(baseUrl).host : baseUrl;
}

/** 600 characters: whole pages come back from proxies and gateways. */
function shorten(text: string): string {
  const line = withoutMarkup(text).replace(/\s+/g, " ").trim();
  return line.length <= 600 ? line : `${line.slice(0, 600)}…`;
}

/** What a web page says, its title first. */
function withoutMarkup(text: string): string {
  if (!/^\s*(?:\d{3}\s+)?<(?:!doctype|html|head|body|\?xml)/i.test(text)) return text;
  return text
    .slice(0, 20_000)
    .replace(/<(script|style)\b[\s\S]*?(?:<\/\1\s*>|$)/gi, " ")
    .replace(/<[^>]*>?/g, " ");
}

/** What the service asks us to wait, in milliseconds. `now` is for tests. */
export function waitHint(headers: Headers | undefined, now = Date.now()): number | undefined {
  if (!headers) return undefined;
  const exact = numberOf(headers.get("retry-after-ms"));
  if (exact >= 0) return exact;
  const after = headers.get("retry-after") ?? "";
  const seconds = numberOf(after);
  if (seconds >= 0) return Math.ceil(seconds * 1000);
  if (isDate(after)) return Math.max(0, Date.parse(after) - now);
  const waits: number[] = [];
  // Many servers name their limits in every response; one that is not used up does not hold us up.
  if ((headers.get("x-ratelimit-remaining") ?? "0") === "0") {
    const resetMs = numberOf(headers.get("x-ratelimit-reset-ms"));
    if (resetMs >= 0) return resetMs > now / 2 ? Math.max(0, resetMs - now) : resetMs;
    waits.push(resetWait(headers.get("x-ratelimit-reset") ?? "", now));
  }
  for (const scope of ["requests", "tokens"]) {
    if (headers.get(`x-ratelimit-remaining-${scope}`) === "0")
      waits.push(resetWait(headers.get(`x-ratelimit-reset-${scope}`) ?? "", now));
  }
  const known = waits.filter((wait) => !Number.isNaN(wait));
  return known.length > 0 ? Math.max(...known) : undefined;
}

/** Of a header that came twice the first value counts, as anywhere else. */
function numberOf(header: string | null): number {
  const text = header?.split(",")[0]?.trim() ?? "";
  return /^\d/.test(text) ? Number(text) : Number.NaN;
}

/** A point in time with a year in it. `Date.parse` takes nearly anything for one. */
function isDate(text: string): boolean {
  return /\b\d{4}\b/.test(text) && !Number.isNaN(Date.parse(text));
}

/** "6m0s", "250ms", seconds, or a point in time as Unix seconds or milliseconds, or as a date. */
function resetWait(text: string, now: number): number {
  const number = numberOf(text);
  if (!Number.isNaN(number)) {
    if (number > 1e11) return Math.max(0, number - now);
    if (number > 1e8) return Math.max(0, number * 1000 - now);
    return Math.max(0, number * 1000);
  }
  if (isDate(text)) return Math.max(0, Date.parse(text) - now);
  const parts = [...text.matchAll(/([\d.]+)(ms|s|m|h)/g)];
  const units: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
  return parts.length === 0
    ? Number.NaN
    : parts.reduce((sum, [, value, unit]) => sum + Number(value) * (units[unit ?? "s"] ?? 0), 0);
}
