// Secrets do not leave with an export: the ones this process knows, and what looks like one.

export const MASKED = "[masked]";

/** Shorter ones are words as well: masking them would hide the text and name the secret. */
const MIN_KNOWN = 6;

/** What a secret looks like; a group is kept. Repetitions are bounded where a long text could be tried from every place. */
const SHAPES: readonly RegExp[] = [
  /-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|$)/g,
  /\bgh[opsur]_[A-Za-z0-9]{16,}/g,
  /\bgithub_pat_[A-Za-z0-9_]{20,}/g,
  /\bglpat-[A-Za-z0-9_-]{16,}/g,
  /\bsk-(?=[A-Za-z0-9_-]{0,100}\d)[A-Za-z0-9_-]{10,}/g,
  /\b(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{10,}/g,
  /\b(?:AKIA|ASIA)[0-9A-Z]{16}\b/g,
  /\bAIza[0-9A-Za-z_-]{35}/g,
  /\bxox[abeoprs]-[A-Za-z0-9-]{10,}/g,
  /\bnpm_[A-Za-z0-9]{30,}/g,
  /\bhf_[A-Za-z0-9]{30,}/g,
  /\beyJ[A-Za-z0-9_-]{10,300}\.[A-Za-z0-9_-]{10,8000}\.[A-Za-z0-9_-]{5,}/g,
  /\b(bearer\s+)[A-Za-z0-9._~+/=-]{12,}/gi,
  /\b(authorization["']?\s*[:=]\s*["']?basic\s+)[A-Za-z0-9+/=]{8,}/gi,
  /\b([a-z][a-z0-9+.-]{0,20}:\/\/[^\s/:@"'<>]*:)[^\s/@"'<>]+(?=@)/gi,
];

export type Mask = (text: string) => string;

export function maskFor(known: readonly string[]): Mask {
  // The longest first: one may be part of another.
  const secrets = [...new Set(known)].filter((secret) => secret.length >= MIN_KNOWN).sort((a, b) => b.length - a.length);
  return (text) => {
    let masked = text;
    for (const secret of secrets) if (masked.includes(secret)) masked = masked.replaceAll(secret, MASKED);
    for (const shape of SHAPES) {
      masked = masked.replace(shape, (_match, kept: unknown) => (typeof kept === "string" ? `${kept}${MASKED}` : MASKED));
    }
    return masked;
  };
}

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/** Nothing that a program means is nested deeper, and what is made of it here calls itself for every level. */
const MAX_DEPTH = 400;
export const TOO_DEEP = "[nested too deep]";

/** A copy with every text and key masked. The data of images stays: a mask in it would break the picture. */
export function maskDeep(value: unknown, mask: Mask, depth = 0): unknown {
  if (typeof value === "string") return mask(value);
  if (typeof value !== "object" || value === null) return value;
  if (depth >= MAX_DEPTH) return TOO_DEEP;
  if (Array.isArray(value)) return value.map((member) => maskDeep(member, mask, depth + 1));
  const isImage = "type" in value && value.type === "image" && "mimeType" in value;
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => {
      const keep = isImage && key === "data" && typeof member === "string" && BASE64.test(member);
      return [mask(key), keep ? member : maskDeep(member, mask, depth + 1)];
    }),
  );
}
