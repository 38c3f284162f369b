// Keeps secrets out of error texts. Servers echo headers in their failures, and network errors quote proxy URLs.

const patterns: readonly [RegExp, string][] = [
  [/(\b(?:proxy-)?authorization["']?\s*[:=]\s*["']?)(?:(?:bearer|basic|token)\s+)?[^\s"',;}]+/gi, "$1[redacted]"],
  [/\b(bearer|basic)\s+[A-Za-z0-9+/=_.~-]{6,}/gi, "$1 [redacted]"],
  [/(\b(?:x-)?api[-_]?key["']?\s*[:=]\s*["']?)[^\s"',;}]+/gi, "$1[redacted]"],
  // A scheme is short. Without a limit a long text is looked through again from each of its letters, which stops the daemon.
  [/(\b[a-z][a-z0-9+.-]{0,20}:\/\/)[^\s/@:]*(?::[^\s/@]*)?@/gi, "$1[redacted]@"],
  [/\bsk-[A-Za-z0-9_-]{8,}/g, "[redacted]"],
];

/** Replaces every secret given, and whatever looks like a credential. */
export function redact(text: string, secrets: readonly string[]): string {
  let clean = text;
  for (const given of secrets) {
    // Headers are sent without the white space around them.
    const secret = given.trim();
    // Shorter ones ("x", "none") are placeholders of keyless servers and would tear words apart.
    if (secret.length >= 6) clean = clean.replaceAll(secret, "[redacted]");
  }
  for (const [pattern, replacement] of patterns) clean = clean.replace(pattern, replacement);
  return clean;
}
