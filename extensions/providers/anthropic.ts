// The Messages API, by the official SDK: api.anthropic.com and every server that speaks the same language.
import type { Messages } from "@anthropic-ai/sdk/resources/messages";
import { defineProvider, type ProviderEvent, type ProviderRequest } from "mortise/extension";
import { type Budgets, budgetsSetting, buildRequest } from "./_anthropic-request.ts";
import { MessageReader } from "./_anthropic-stream.ts";
import { dropThinking, isAboutThinking } from "./_bound-thinking.ts";
import { Exchange } from "./_exchange.ts";
import { fault } from "./_faults.ts";
import { relay } from "./_relay.ts";
import type { Fetch } from "./_transport.ts";

const PUBLIC_URL = "https://api.anthropic.com";
/** The SDK's limit covers the wait for headers only; silence is watched by the exchange. Largest delay of a timer. */
const NO_LIMIT_MS = 2_147_483_647;

const provider = defineProvider({
  name: "anthropic-messages",
  summary: "Anthropic's Messages API and servers compatible with it",
  needsKey: true,
  async *stream(request, ctx) {
    const exchange = new Exchange(request, baseUrlOf(request.model.baseUrl), ctx);
    try {
      yield* answer(request, exchange, ctx.setting(budgetsSetting));
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
      await client.get("/v1/models", { query: { limit: 1 }, signal });
    } catch (error) {
      throw fault(error, { signal, secrets: [key], baseUrl: url });
    }
  },
});

export default [provider, budgetsSetting];

async function* answer(request: ProviderRequest, exchange: Exchange, budgets: Budgets): AsyncGenerator<ProviderEvent> {
  exchange.connection.throwIfAborted();
  const client = await open(exchange.baseUrl, request.apiKey, request.headers ?? {}, await exchange.fetch());
  const post = async () => {
    const { body, names } = await buildRequest(request, budgets);
    // Not `messages.create`: it writes advice about older models to the console.
    const stream = await client.post<AsyncIterable<Messages.RawMessageStreamEvent>>("/v1/messages", {
      // Bytes go out as they are; the SDK does not know what they are.
      body,
      headers: { "content-type": "application/json" },
      stream: true,
      signal: exchange.connection,
    });
    return { stream, reader: new MessageReader(names) };
  };
  const { stream, reader } = await post().catch((error: unknown) => {
    if (isAboutThinking(error) && dropThinking(request.messages)) return post();
    throw error;
  });
  yield* relay(stream, reader);
  if (!reader.mayEnd) throw exchange.cut("before the message was complete");
  yield reader.finish();
}

async function open(baseURL: string, apiKey: string | undefined, headers: Readonly<Record<string, string>>, fetch: Fetch) {
  const { default: Anthropic } = await import("@anthropic-ai/sdk");
  // Tokens of a subscription are bearers. Keys travel as `x-api-key`, which older compatible servers know as well.
  const isBearer = apiKey?.startsWith("sk-ant-oat") ?? false;
  return new Anthropic({
    baseURL,
    // Some credential has to be given, or the SDK looks for one in the user's home directory.
    ...(isBearer ? { authToken: apiKey ?? null } : { apiKey: apiKey ?? "none" }),
    defaultHeaders: {
      ...(isBearer ? { "anthropic-beta": "oauth-2025-04-20" } : { authorization: null, "x-api-key": apiKey ?? null }),
      ...headers,
    },
    // Retries belong to the run: it announces them, and they can be aborted.
    maxRetries: 0,
    timeout: NO_LIMIT_MS,
    logLevel: "off",
    fetch,
  });
}

/** The SDK adds `/v1` itself; people write it as they do for other services. */
function baseUrlOf(url: string): string {
  return (url || PUBLIC_URL).replace(/\/+$/, "").replace(/\/v1$/, "");
}
