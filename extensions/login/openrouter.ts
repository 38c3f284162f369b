// OpenRouter's public login: a code with proof of possession (PKCE), exchanged for a key of the user's account.
import { createHash, randomBytes } from "node:crypto";
import { CommandError, defineLoginFlow, errorMessage, type LoginContext, z } from "mortise/extension";
import { deferred } from "./_deferred.ts";
import type { Loopback } from "./_loopback.ts";

const PUBLIC_URL = "https://openrouter.ai";
/** The port that the service documents for programs on the user's machine. */
const LOOPBACK_PORT = 3000;
const LOGIN_LIMIT_MS = 600_000;
const EXCHANGE_LIMIT_MS = 30_000;

const Exchange = z.object({ key: z.string().min(1) });

export default defineLoginFlow({
  name: "openrouter",
  displayName: "OpenRouter",
  async run(ctx) {
    const base = (ctx.env["MORTISE_OPENROUTER_URL"] || PUBLIC_URL).replace(/\/+$/, "");
    const verifier = randomBytes(32).toString("base64url");
    const state = randomBytes(16).toString("base64url");
    const { openLoopback } = await import("./_loopback.ts");
    const loopback = await openLoopback(state, LOOPBACK_PORT);
    try {
      const url = new URL(`${base}/auth`);
      // The state is part of the path: services append their parameters in more than one way.
      url.searchParams.set("callback_url", `http://localhost:${loopback.port}/callback/${state}`);
      url.searchParams.set("code_challenge", createHash("sha256").update(verifier).digest("base64url"));
      url.searchParams.set("code_challenge_method", "S256");
      loopback.target = url.href;
      ctx.openUrl({
        url: url.href,
        launchUrl: loopback.launchUrl,
        instructions: "Log in to OpenRouter in the browser. If the browser runs on another machine, paste the address it ends at",
        credential: "oauth",
      });
      const code = await codeOf(ctx, loopback, state);
      ctx.progress("Exchanging the code for a key");
      return { type: "api_key", key: await exchange(ctx, base, code, verifier) };
    } finally {
      loopback.close();
    }
  },
});

/** The first of: the browser's redirect, a pasted code or address, the end of patience. */
async function codeOf(ctx: LoginContext, loopback: Loopback, state: string): Promise<string> {
  const over = new AbortController();
  const limit = AbortSignal.any([ctx.signal, AbortSignal.timeout(LOGIN_LIMIT_MS)]);
  const end = deferred<never>();
  const stop = () =>
    end.reject(ctx.signal.aborted ? ctx.signal.reason : new CommandError("Nobody logged in within 10 minutes", "cancelled"));
  limit.addEventListener("abort", stop, { once: true });
  try {
    return await Promise.race([loopback.code, pasted(ctx, state, over.signal), end.promise]);
  } finally {
    limit.removeEventListener("abort", stop);
    over.abort();
  }
}

/** Never resolves without a code: a cancelled prompt still leaves the browser. */
async function pasted(ctx: LoginContext, state: string, signal: AbortSignal): Promise<string> {
  let title = "Paste the authorization code (or full redirect URL):";
  while (!signal.aborted) {
    // A dialog that cannot be shown is like one that nobody answers.
    const text = (await ctx.prompt({ title }, { signal }).catch(() => "")).trim();
    if (text === "") break;
    const code = codeIn(text, state);
    if (code !== undefined) return code;
    title = "That address belongs to another login. Paste the authorization code (or full redirect URL):";
  }
  return new Promise(() => {});
}

function codeIn(text: string, state: string): string | undefined {
  if (!URL.canParse(text)) return text;
  const { pathname, searchParams } = new URL(text);
  return pathname === `/callback/${state}` ? (searchParams.get("code") ?? undefined) : undefined;
}

async function exchange(ctx: LoginContext, base: string, code: string, verifier: string): Promise<string> {
  const { signal } = ctx;
  let response: Response;
  try {
    response = await ctx.fetch(`${base}/api/v1/auth/keys`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ code, code_verifier: verifier, code_challenge_method: "S256" }),
      signal: AbortSignal.any([signal, AbortSignal.timeout(EXCHANGE_LIMIT_MS)]),
    });
  } catch (error) {
    signal.throwIfAborted();
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    throw new CommandError(`Cannot reach OpenRouter to exchange the code: ${errorMessage(cause)}`);
  }
  // The body may quote the code; the status says enough.
  if (!response.ok) {
    await response.body?.cancel();
    throw new CommandError(`OpenRouter did not take the code (status ${response.status}): start the login again`);
  }
  const body = Exchange.safeParse(await response.json().catch(() => undefined));
  if (!body.success) throw new CommandError("OpenRouter answered without a key: start the login again");
  return body.data.key;
}
