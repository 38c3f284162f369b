// Secrets of the daemon in what tools give: a file or a command may show the credential store, the conversation must not keep it.
import { type Context, Credentials, defineHook, toolFinished, toolProgress } from "mortise/extension";

/** Shorter values would hit ordinary words. */
const MIN_LENGTH = 8;

/** Last, so that nothing is added to the result after it. */
const LAST = { priority: 1000 };

export const maskResults = defineHook(
  toolFinished,
  (finished, ctx) => {
    const result = withoutSecrets(finished.result, ctx);
    return result === finished.result ? undefined : { ...finished, result };
  },
  LAST,
);

export const maskProgress = defineHook(
  toolProgress,
  (progress, ctx) => {
    const partial = withoutSecrets(progress.partial, ctx);
    return partial === progress.partial ? undefined : { ...progress, partial };
  },
  LAST,
);

/** The value itself when no secret is in it. */
function withoutSecrets<T>(value: T, ctx: Context): T {
  const secrets = secretsOf(ctx);
  return secrets.some((secret) => contains(value, secret)) ? masked(value, secrets) : value;
}

function secretsOf(ctx: Context): readonly string[] {
  try {
    return ctx
      .use(Credentials)
      .secrets()
      .filter((secret) => secret.length >= MIN_LENGTH);
  } catch {
    // An unreadable store is told elsewhere; it is no reason to lose a result.
    return [];
  }
}

function contains(value: unknown, secret: string): boolean {
  if (typeof value === "string") return value.includes(secret);
  if (typeof value !== "object" || value === null) return false;
  return Object.values(value).some((member) => contains(member, secret));
}

/** The same value with every secret in its texts replaced; pictures hold none by accident. */
function masked<T>(value: T, secrets: readonly string[]): T {
  const mask = (inner: unknown): unknown => {
    if (typeof inner === "string") return secrets.reduce((text, secret) => text.replaceAll(secret, "[redacted]"), inner);
    if (Array.isArray(inner)) return inner.map(mask);
    if (typeof inner !== "object" || inner === null) return inner;
    return Object.fromEntries(Object.entries(inner).map(([key, member]) => [key, mask(member)]));
  };
  return mask(value) as T;
}
