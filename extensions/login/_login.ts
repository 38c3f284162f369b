// One login from the request to the stored credential. Until the very end nothing is stored, so a failure changes nothing.
import {
  CommandError,
  type Context,
  Credentials,
  errorMessage,
  Launch,
  type LoginContext,
  type LoginFlowDefinition,
  Models,
  ProviderError,
  Transport,
} from "mortise/extension";
import { LoginRuns } from "./_runs.ts";

/** How long a person has for a browser, a second factor and a paste (protocol-facts §1.11). */
const PROMPT_LIMIT_MS = 600_000;
const VERIFY_LIMIT_MS = 15_000;

/** @throws {CommandError} for an unknown provider, a cancelled or a failed login. */
export async function runLogin(ctx: Context, provider: string): Promise<void> {
  const entry = ctx.registry.get("login flow", provider);
  if (entry === undefined) throw new CommandError(`Unknown OAuth provider: ${provider}`, "not_found");
  await ctx.use(LoginRuns).run(provider, async (abort) => {
    const signal = AbortSignal.any([abort, ctx.signal]);
    const release = entry.scope.lease();
    try {
      const credential = await untilAborted(entry.definition.run(contextFor(ctx, entry.definition, signal)), signal);
      signal.throwIfAborted();
      await ctx.use(Credentials).set(provider, credential);
    } catch (error) {
      throw refusal(error, signal);
    } finally {
      release();
    }
  });
  await ctx.tryUse(Models)?.refresh();
  selectFirst(ctx);
}

function refusal(error: unknown, signal: AbortSignal): CommandError {
  if (signal.aborted) {
    return CommandError.is(signal.reason) ? signal.reason : new CommandError("Login was cancelled", "cancelled");
  }
  return CommandError.is(error) ? error : new CommandError(errorMessage(error), undefined, { cause: error });
}

/** A flow that ignores the signal must not hold the command. */
function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}

/** A conversation that had no model for want of a credential gets one now. */
function selectFirst(ctx: Context): void {
  const { conversation } = ctx;
  if (conversation.selection.model !== undefined) return;
  const initial = ctx.tryUse(Models)?.initial();
  if (initial === undefined) return;
  conversation.select({ model: initial.model, thinkingLevel: initial.thinkingLevel ?? "off" });
  conversation.emitRaw({ type: "model_changed", model: initial.model });
}

function contextFor(ctx: Context, flow: LoginFlowDefinition, signal: AbortSignal): LoginContext {
  const show = (method: string, params: Record<string, unknown>) => {
    // Notices are not answered; one that cannot be sent is no reason to give up.
    ctx.ui.call(method, params).catch((error: unknown) => ctx.log.debug(`${method} was not shown: ${errorMessage(error)}`));
  };
  return {
    signal,
    env: ctx.tryUse(Launch)?.env ?? process.env,
    fetch: async (input, init) => (await fetchOf(ctx))(input, init),
    openUrl: ({ url, launchUrl, instructions, credential }) =>
      show("open_url", { url, ...(launchUrl && { launchUrl }), ...(instructions && { instructions }), credential }),
    progress: (text) => show("notify", { message: text, notifyType: "info" }),
    async prompt({ title, placeholder }, options) {
      const waiting = options?.signal ? AbortSignal.any([signal, options.signal]) : signal;
      const params = { title, ...(placeholder && { placeholder }) };
      const answer = await ctx.ui.call("input", params, { timeout: PROMPT_LIMIT_MS, signal: waiting });
      return typeof answer === "string" ? answer : "";
    },
    verifyKey: (key) => verifyKey(ctx, flow, key, signal, (text) => show("notify", { message: text, notifyType: "warning" })),
  };
}

async function fetchOf(ctx: Context): Promise<typeof globalThis.fetch> {
  return (await ctx.tryUse(Transport)?.fetch()) ?? globalThis.fetch;
}

async function verifyKey(
  ctx: Context,
  flow: LoginFlowDefinition,
  key: string,
  signal: AbortSignal,
  warn: (text: string) => void,
): Promise<void> {
  const model = ctx
    .tryUse(Models)
    ?.all()
    .find((candidate) => candidate.provider === flow.name);
  const provider = model && ctx.registry.get("provider", model.api)?.definition;
  if (!model || !provider?.verifyKey) return;
  try {
    await provider.verifyKey(
      key,
      model.baseUrl,
      AbortSignal.any([signal, AbortSignal.timeout(VERIFY_LIMIT_MS)]),
      await fetchOf(ctx),
    );
  } catch (error) {
    signal.throwIfAborted();
    // A quota is no reason to refuse a key, and neither is a service that is down.
    if (ProviderError.is(error) && error.kind === "auth") {
      throw new CommandError(`${flow.displayName} does not accept this key: ${error.message}`, "invalid_params");
    }
    warn(`The key could not be checked and is stored as it is: ${errorMessage(error)}`);
  }
}
