// The secrets that the credential store knows, in texts that come from others.
import type { Context } from "../kernel/context.ts";
import { ProviderError } from "../kernel/errors.ts";
import { Credentials } from "../services/models.ts";

/** Shorter ones are placeholders of keyless servers, and would hit ordinary words. */
const MIN_LENGTH = 8;

export function withoutSecrets(text: string, secrets: readonly string[]): string {
  let masked = text;
  for (const secret of secrets) if (secret.length >= MIN_LENGTH) masked = masked.replaceAll(secret, "[redacted]");
  return masked;
}

/** The failure itself when there is no secret in what it says. */
export function maskedFailure(failure: ProviderError, redact: (text: string) => string): ProviderError {
  const message = redact(failure.message);
  if (message === failure.message) return failure;
  // No cause: it would carry the text as it was.
  return new ProviderError(message, failure.kind, { status: failure.status, retryAfterMs: failure.retryAfterMs });
}

/** Masks what this daemon knows at the time of the text. */
export function redactFor(ctx: Context): (text: string) => string {
  return (text) => withoutSecrets(text, knownTo(ctx));
}

/** The same value with every secret in its texts replaced; the value itself when there is none in it. */
export function redacted<T>(ctx: Context, value: T): T {
  const secrets = knownTo(ctx);
  const mask = (inner: unknown): unknown => {
    if (typeof inner === "string") return withoutSecrets(inner, secrets);
    if (typeof inner !== "object" || inner === null) return inner;
    const members = Object.entries(inner);
    const masked = members.map(([key, member]): [string, unknown] => [key, mask(member)]);
    if (masked.every(([, member], at) => member === members[at]?.[1])) return inner;
    return Array.isArray(inner) ? masked.map(([, member]) => member) : Object.fromEntries(masked);
  };
  return secrets.length === 0 ? value : (mask(value) as T);
}

function knownTo(ctx: Context): readonly string[] {
  try {
    return ctx.tryUse(Credentials)?.secrets() ?? [];
  } catch {
    // A store that cannot be made is told elsewhere, and knows nothing: no reason to lose what is said.
    return [];
  }
}
