// Chat completions, by the official SDK: api.openai.com and every server that speaks the same language.
import { type Context, defineProvider, type Model, notice, type ProviderEvent, type ProviderRequest } from "mortise/extension";
import type { ChatCompletionChunk } from "openai/resources/chat/completions";
import { Exchange } from "./_exchange.ts";
import { fault } from "./_faults.ts";
import { buildRequest, isOfficial, readCompat } from "./_openai-request.ts";
import { CompletionReader } from "./_openai-stream.ts";
import { relay } from "./_relay.ts";
import type { Fetch } from "./_transport.ts";

const PUBLIC_URL = "https://api.openai.com/v1";
/** The SDK's limit covers the wait for headers only; silence is watched by the exchange. Largest delay of a timer. */
const NO_LIMIT_MS = 2_147_483_647;

export default defineProvider({
  name: "openai-completions",
  summary: "OpenAI's chat completions and servers compatible with them",
  needsKey: true,
  async *stream(request, ctx) {
    const exchange = new Exchange(request, baseUrlOf(request.model.baseUrl), ctx);
    try {
      tellMistakes(request.model, ctx);
      yield* answer(request, exchange);
    } catch (error) {
      yield { type: "error", error: exchange.fault(error) };
    } finally {
      exchange.close();
    }
  },
  async verifyKey(key, baseUrl, signal, fetch = globalThis.fetch) {
    const url = baseUrlOf(baseUrl ?? "");
    try {
      const client = await open(url, key, {}, fetch);
      await client.models.list({ signal });
    } catch (error) {
      throw fault(error, { signal, secrets: [key], baseUrl: url });
    }
  },
});

/** Models whose mistakes were told. Those of a changed models.yml are other objects. */
const told = new WeakSet<Model>();

function tellMistakes(model: Model, ctx: Context): void {
  if (told.has(model)) return;
  told.add(model);
  for (const problem of readCompat(model).problems) {
    const message = `models.yml: ${model.provider}/${model.id}: ${problem}; it is left out`;
    ctx.send(notice, { level: "warning", message, source: "providers" });
  }
}

async function* answer(request: ProviderRequest, exchange: Exchange): AsyncGenerator<ProviderEvent> {
  exchange.connection.throwIfAborted();
  const { body, names } = await buildRequest(request, exchange.baseUrl);
  const client = await open(exchange.baseUrl, request.apiKey, request.headers ?? {}, await exchange.fetch());
  // As `chat.completions.create` does it, with bytes: they go out as they are, and the SDK does not know what they are.
  const stream = await client.post<AsyncIterable<ChatCompletionChunk>>("/chat/completions", {
    body,
    headers: { "content-type": "application/json" },
    stream: true,
    signal: exchange.connection,
  });
  const reader = new CompletionReader(names, request.model.cost.cacheWrite > 0);
  yield* relay(stream, reader);
  if (!reader.mayEnd && !(reader.hasContent && exchange.sawEndMark)) throw exchange.cut("before the answer was complete");
  yield* reader.finish();
}

async function open(baseURL: string, apiKey: string | undefined, headers: Readonly<Record<string, string>>, fetch: Fetch) {
  const { default: OpenAI } = await import("openai");
  return new OpenAI({
    baseURL,
    apiKey: apiKey ?? "none",
    // The organisation in the environment is meant for the service itself, not for other servers.
    ...(!isOfficial(baseURL) && { organization: null, project: null }),
    defaultHeaders: { ...(apiKey === undefined && { authorization: null }), ...headers },
    // Retries belong to the run: it announces them, and they can be aborted.
    maxRetries: 0,
    timeout: NO_LIMIT_MS,
    logLevel: "off",
    fetch,
  });
}

function baseUrlOf(url: string): string {
  return (url || PUBLIC_URL).replace(/\/+$/, "");
}
