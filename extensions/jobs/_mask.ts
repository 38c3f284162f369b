// Secrets of the daemon in what a job gives: it reaches the conversation beside the results of tools, which are masked on their way.
import { type Context, Credentials, type JobResult } from "mortise/extension";

/** Shorter values would hit ordinary words. */
const MIN_LENGTH = 8;

/** The result itself when no secret is in it. */
export function maskedResult(ctx: Context, result: JobResult): JobResult {
  const secrets = secretsOf(ctx).filter((secret) => secret.length >= MIN_LENGTH);
  const mask = (value: unknown): unknown => {
    if (typeof value === "string") return secrets.reduce((text, secret) => text.replaceAll(secret, "[redacted]"), value);
    if (Array.isArray(value)) return value.map(mask);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, mask(member)]));
  };
  if (secrets.length === 0) return result;
  return {
    ...result,
    text: String(mask(result.text)),
    ...(result.details === undefined ? {} : { details: mask(result.details) }),
  };
}

function secretsOf(ctx: Context): readonly string[] {
  try {
    return ctx.tryUse(Credentials)?.secrets() ?? [];
  } catch {
    // An unreadable store is told elsewhere; it is no reason to lose a result.
    return [];
  }
}
