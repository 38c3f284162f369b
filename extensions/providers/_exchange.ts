// One request and its response: the connection ends when the caller aborts, when nothing arrives for too long, and when the
// reader goes away. `close` must run on every exit.
import { type Context, defineSetting, ProviderError, type ProviderRequest, Transport, z } from "mortise/extension";
import { type FaultSource, fault } from "./_faults.ts";
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

export class Exchange implements FaultSource {
  readonly signal: AbortSignal;
  readonly baseUrl: string;
  readonly secrets: readonly string[];
  idle: ProviderError | undefined;
  readonly #controller = new AbortController();
  readonly #context: Context;
  readonly #onAbort = () => this.#controller.abort();
  #timer: NodeJS.Timeout | undefined;

  constructor(request: ProviderRequest, baseUrl: string, ctx: Context) {
    this.signal = request.signal;
    this.baseUrl = baseUrl;
    this.#context = ctx;
    this.secrets = [request.apiKey ?? "", ...Object.values(request.headers ?? {})];
    if (request.signal.aborted) this.#controller.abort();
    else request.signal.addEventListener("abort", this.#onAbort, { once: true });
    const limitMs = ctx.setting(idleSetting);
    if (limitMs > 0) this.#timer = setTimeout(() => this.#giveUp(limitMs), limitMs);
  }

  /** Aborts the connection; hand it to the SDK. */
  get connection(): AbortSignal {
    return this.#controller.signal;
  }

  /** A fetch that notes every byte and refuses what is no event stream. */
  async fetch(): Promise<Fetch> {
    const inner = await this.#context.use(Transport).fetch();
    return async (input, init) => this.#watch(await inner(input, init));
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

  #giveUp(limitMs: number): void {
    this.idle = new ProviderError(`Nothing arrived from ${this.#host} for ${limitMs / 1000} s`, "retryable");
    this.#controller.abort();
  }

  async #watch(response: Response): Promise<Response> {
    this.#timer?.refresh();
    if (!response.ok) return failure(response);
    if (response.body === null) return response;
    const type = response.headers.get("content-type") ?? "";
    if (/text\/html|application\/xhtml/i.test(type)) {
      void response.body.cancel().catch(() => {});
      throw new ProviderError(
        `${this.#host} answered with a web page instead of an event stream: check the base URL "${this.baseUrl}"`,
        "retryable",
        { status: response.status },
      );
    }
    const watched = noted(response.body, () => this.#timer?.refresh());
    return new Response(watched, { status: response.status, statusText: response.statusText, headers: response.headers });
  }
}

/** The same bytes; `onBytes` is called for each piece. A pipe through a TransformStream costs several times as much. */
function noted(body: ReadableStream<Uint8Array>, onBytes: () => void): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await reader.read();
      if (done) return controller.close();
      onBytes();
      controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
}

/**
 * A failure in the form the SDKs read. Servers that wrap their words differently (`{detail}`, `{message}`, `{error: "…"}`) would
 * otherwise count as having sent no body, and that means "too long" to us.
 */
async function failure(response: Response): Promise<Response> {
  const text = await response.text();
  const headers = new Headers([...response.headers]);
  // Node has unpacked the body already.
  headers.delete("content-encoding");
  headers.delete("content-length");
  return new Response(normalised(text), { status: response.status, statusText: response.statusText, headers });
}

function normalised(text: string): string {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    // Plain text: the SDKs take it as the message.
    return text;
  }
  const parsed = FailureBody.safeParse(Array.isArray(body) ? body[0] : body);
  if (!parsed.success || typeof parsed.data.error === "object") return Array.isArray(body) ? JSON.stringify(body[0]) : text;
  const { error, message, detail, code } = parsed.data;
  const words = error ?? message ?? (typeof detail === "string" ? detail : undefined) ?? text;
  return JSON.stringify({ error: { message: words, code: code ?? null } });
}
