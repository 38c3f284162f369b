// One request and its response: the connection ends when the caller aborts, when nothing arrives for too long, and when the
// reader goes away. `close` must run on every exit.
import { type Context, defineSetting, ProviderError, type ProviderRequest, Transport, z } from "mortise/extension";
import { FailureInBody, type FaultSource, fault } from "./_faults.ts";
import type { Fetch } from "./_transport.ts";

export const idleSetting = defineSetting({
  name: "providers.idleTimeoutMs",
  summary: "Milliseconds without a byte from a model service before the request counts as broken; 0 waits for ever",
  schema: z.number().int().nonnegative(),
  default: 120_000,
});

const FailureBody = z.object({
  error: z.union([z.string(), z.looseObject({})]).optional(),
  message: z.string().optional(),
  detail: z.unknown().optional(),
  code: z.union([z.string(), z.number()]).optional(),
});

const Wrapped = z.object({ error: z.unknown() });

export class Exchange implements FaultSource {
  readonly signal: AbortSignal;
  readonly baseUrl: string;
  readonly secrets: readonly string[];
  idle: ProviderError | undefined;
  readonly #controller = new AbortController();
  readonly #context: Context;
  readonly #onAbort = () => this.#controller.abort();
  #timer: NodeJS.Timeout | undefined;
  #tail: Uint8Array = new Uint8Array();

  constructor(request: ProviderRequest, baseUrl: string, ctx: Context) {
    this.signal = request.signal;
    this.baseUrl = baseUrl;
    this.#context = ctx;
    this.secrets = [request.apiKey ?? "", ...Object.values(request.headers ?? {})];
    if (request.signal.aborted) this.#controller.abort();
    else request.signal.addEventListener("abort", this.#onAbort, { once: true });
  }

  /** Aborts the connection; hand it to the SDK. */
  get connection(): AbortSignal {
    return this.#controller.signal;
  }

  /** A fetch that notes every byte and refuses what is no event stream. */
  async fetch(): Promise<Fetch> {
    const inner = await this.#context.use(Transport).fetch();
    return async (input, init) => {
      this.#listen();
      // Followed, a redirect would make another kind of request of it, and take the key to another server.
      return this.#watch(await inner(input, { ...init, redirect: "manual" }));
    };
  }

  /** True when the last thing that arrived is `[DONE]`: some servers end with it and give no reason. */
  get sawEndMark(): boolean {
    return /data:\s*\[DONE\]\s*$/.test(Buffer.from(this.#tail.subarray(-TAIL_BYTES)).toString("latin1"));
  }

  /** The failure event's error. */
  fault(error: unknown): ProviderError {
    return fault(error, this);
  }

  /** The error of a stream that ended before its time; the reason is the abort or the silence when there was one. */
  cut(where: string): ProviderError {
    return this.fault(new ProviderError(`The stream of ${this.#host} ended ${where}`, "retryable"));
  }

  close(): void {
    clearTimeout(this.#timer);
    this.signal.removeEventListener("abort", this.#onAbort);
    this.#controller.abort();
  }

  get #host(): string {
    return URL.canParse(this.baseUrl) ? new URL(this.baseUrl).host : this.baseUrl;
  }

  /** How long the text of a failure is waited for: its status says the most, and silence would be another failure. */
  get #errorBodyMs(): number {
    const limitMs = this.#context.setting(idleSetting);
    return limitMs > 0 ? Math.min(limitMs / 2, LONGEST_ERROR_MS) : LONGEST_ERROR_MS;
  }

  /** From now on silence is the service's. Building a long request and loading the SDK take time of our own. */
  #listen(): void {
    const limitMs = this.#context.setting(idleSetting);
    if (limitMs <= 0 || this.#timer !== undefined || this.connection.aborted) return;
    this.#timer = setTimeout(() => this.#giveUp(limitMs), limitMs);
  }

  #giveUp(limitMs: number): void {
    this.idle = new ProviderError(`Nothing arrived from ${this.#host} for ${limitMs / 1000} s`, "retryable");
    this.#controller.abort();
  }

  async #watch(response: Response): Promise<Response> {
    this.#timer?.refresh();
    const { status } = response;
    if (status >= 300 && status < 400) throw this.#redirected(response);
    if (!response.ok) return failure(response, this.#errorBodyMs);
    if (response.body === null)
      throw new ProviderError(`${this.#host} answered ${status} without a body`, "retryable", { status });
    const page = () =>
      new ProviderError(
        `${this.#host} answered with a web page instead of an event stream: check the base URL "${this.baseUrl}"`,
        "retryable",
        { status },
      );
    const type = response.headers.get("content-type") ?? "";
    if (/text\/html|application\/xhtml/i.test(type)) {
      void response.body.cancel().catch(() => {});
      throw page();
    }
    const watched = noted(response.body, {
      bytes: (value) => {
        this.#timer?.refresh();
        this.#tail = value.length >= TAIL_BYTES ? value : Buffer.concat([this.#tail.subarray(-TAIL_BYTES), value]);
      },
      json: (text) => notStreamed(text, this.#host),
      page,
    });
    return new Response(watched, { status: response.status, statusText: response.statusText, headers: response.headers });
  }

  #redirected({ status, headers, body }: Response): ProviderError {
    void body?.cancel().catch(() => {});
    const target = headers.get("location");
    const where = target === null ? "another address" : `"${target}"`;
    return new ProviderError(`${this.#host} redirects to ${where}: take the base URL from there`, "fatal", { status });
  }
}

interface Listener {
  /** Called for each piece. */
  bytes(piece: Uint8Array): void;
  /** The error for a body that is JSON. */
  json(text: string): Error;
  /** The error for a body that is a web page. */
  page(): Error;
}

const LONGEST_ERROR_MS = 5000;
const OPENING_BRACE = 0x7b;
const OPENING_BRACKET = 0x5b;
const LESS_THAN = 0x3c;
const CLOSING_BRACE = 0x7d;
/** Longer than the end mark of a stream. */
const TAIL_BYTES = 32;
/** Error bodies are short; more of something else is of no use. */
const MAX_JSON_BYTES = 64 * 1024;

/** The same bytes. A pipe through a TransformStream costs several times as much. */
function noted(body: ReadableStream<Uint8Array>, listener: Listener): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  let begun = false;
  let last: number | undefined;
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await reader.read();
      if (done) {
        // Some servers leave the blank line behind their last event out, and readers of event streams drop such an event.
        if (last === CLOSING_BRACE) controller.enqueue(Buffer.from("\n\n"));
        return controller.close();
      }
      listener.bytes(value);
      last = value.at(-1) ?? last;
      if (!begun) {
        const opening = value.find((byte) => !isBlank(byte));
        begun = opening !== undefined;
        // No line of an event stream begins like that, and the SDKs would skip it without a word.
        if (opening === OPENING_BRACE || opening === OPENING_BRACKET) throw listener.json(await rest(reader, value));
        if (opening === LESS_THAN) {
          void reader.cancel().catch(() => {});
          throw listener.page();
        }
      }
      controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
}

/** White space and the bytes of a byte order mark. */
function isBlank(byte: number): boolean {
  return byte <= 0x20 || byte === 0xef || byte === 0xbb || byte === 0xbf;
}

async function rest(reader: ReadableStreamDefaultReader<Uint8Array>, begun?: Uint8Array): Promise<string> {
  const pieces = begun === undefined ? [] : [begun];
  let size = begun?.length ?? 0;
  while (size < MAX_JSON_BYTES) {
    const { done, value } = await reader.read();
    if (done) break;
    pieces.push(value);
    size += value.length;
  }
  void reader.cancel().catch(() => {});
  return Buffer.concat(pieces).toString("utf8");
}

/** The error for JSON with status 200: some servers and gateways report a failure like that. */
function notStreamed(text: string, host: string): Error {
  const body = parsed(text);
  const failure = FailureBody.safeParse(Array.isArray(body) ? body[0] : body);
  const words = failure.success ? (failure.data.error ?? failure.data.message ?? failure.data.detail) : undefined;
  if (words === undefined) return new ProviderError(`${host} answered with JSON instead of an event stream`, "retryable");
  return new FailureInBody(Wrapped.parse(parsed(normalised(text))).error);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Cut short, or no JSON after all.
    return undefined;
  }
}

/**
 * A failure in the form the SDKs read. Servers that wrap their words differently (`{detail}`, `{message}`, `{error: "…"}`) would
 * otherwise count as having sent no body, and that means "too long" to us.
 */
async function failure(response: Response, limitMs: number): Promise<Response> {
  const text = response.body === null ? "" : await textOf(response.body, limitMs);
  const headers = new Headers([...response.headers]);
  // Node has unpacked the body already.
  headers.delete("content-encoding");
  headers.delete("content-length");
  return new Response(normalised(text), { status: response.status, statusText: response.statusText, headers });
}

async function textOf(body: ReadableStream<Uint8Array>, limitMs: number): Promise<string> {
  const reader = body.getReader();
  const timer = setTimeout(() => void reader.cancel().catch(() => {}), limitMs);
  try {
    return await rest(reader);
  } finally {
    clearTimeout(timer);
  }
}

function normalised(text: string): string {
  const body = parsed(text);
  // Plain text: the SDKs take it as the message.
  if (body === undefined) return text;
  const failure = FailureBody.safeParse(Array.isArray(body) ? body[0] : body);
  if (!failure.success || typeof failure.data.error === "object") return Array.isArray(body) ? JSON.stringify(body[0]) : text;
  const { error, message, detail, code } = failure.data;
  const words = error ?? message ?? (typeof detail === "string" ? detail : undefined) ?? text;
  return JSON.stringify({ error: { message: words, code: code ?? null } });
}
