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
  return (text) => {
    try {
      return withoutSecrets(text, ctx.tryUse(Credentials)?.secrets() ?? []);
    } catch {
      // A store that cannot be made is told elsewhere, and knows nothing.
      return text;
    }
  };
}
