// The way to the network. Requests go through the proxy that the environment names; one dispatcher serves all of them.
import { type Context, Launch, type Transport } from "mortise/extension";

export type Fetch = typeof globalThis.fetch;

const proxyNames = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

export function createTransport(ctx: Context): Transport {
  let proxied: { key: string; fetch: Fetch } | undefined;

  async function open(env: NodeJS.ProcessEnv, key: string): Promise<Fetch> {
    // Its own fetch as well: Node's built-in one is another version and does not take foreign dispatchers for granted.
    const undici = await import("undici");
    const all = env["ALL_PROXY"] || env["all_proxy"];
    const http = env["http_proxy"] || env["HTTP_PROXY"] || all;
    const https = env["https_proxy"] || env["HTTPS_PROXY"] || all || http;
    const dispatcher = new undici.EnvHttpProxyAgent({
      ...(http && { httpProxy: http }),
      ...(https && { httpsProxy: https }),
      noProxy: env["no_proxy"] || env["NO_PROXY"] || "",
      // Silence is judged by the exchange, by the setting the user can change.
      bodyTimeout: 0,
      headersTimeout: 0,
    });
    ctx.scope.own(() => dispatcher.close(), "provider proxy connections");
    const fetch = ((input: string, init: object) => undici.fetch(input, { ...init, dispatcher })) as unknown as Fetch;
    proxied = { key, fetch };
    return fetch;
  }

  return {
    async fetch() {
      const env = ctx.tryUse(Launch)?.env ?? process.env;
      const key = [...proxyNames, "no_proxy", "NO_PROXY"].map((name) => env[name] ?? "").join("\0");
      if (!proxyNames.some((name) => env[name])) return globalThis.fetch;
      return proxied?.key === key ? proxied.fetch : open(env, key);
    },
  };
}
