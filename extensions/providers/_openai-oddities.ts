// What servers of the chat completions language put elsewhere: counts, failures, content in parts. Read from the few chunks that
// are no plain delta.
import { type TokenCounts, z } from "mortise/extension";

/** The parts of a chunk that the service itself does not send. */
export const Aside = z.object({
  object: z.unknown().optional(),
  message: z.unknown().optional(),
  detail: z.unknown().optional(),
  type: z.unknown().optional(),
  code: z.unknown().optional(),
  choices: z.array(z.object({ usage: z.unknown().optional(), error: z.unknown().optional() })).nullish(),
  x_groq: z.object({ usage: z.unknown().optional(), error: z.unknown().optional() }).nullish().catch(undefined),
});
type Aside = z.infer<typeof Aside>;

/** What went wrong, in the form of a failure event's `error`; undefined when nothing did. */
export function failureOf(aside: Aside): unknown {
  const named = aside.choices?.[0]?.error ?? aside.x_groq?.error;
  if (named) return named;
  if (aside.choices) return undefined;
  const { message, detail, type, code } = aside;
  const words = typeof message === "string" && message !== "" ? message : (detail ?? undefined);
  if (aside.object !== "error" && words === undefined) return undefined;
  return { message: typeof words === "string" ? words : JSON.stringify(words), type, code };
}

const Parts = z.array(
  z.object({ type: z.string(), text: z.string().optional(), thinking: z.unknown().optional() }).catch({ type: "unknown" }),
);

/** Content that comes as a list, with reasoning as a part of it. */
export function contentParts(content: unknown): { type: "text" | "thinking"; text: string }[] {
  const parts = Array.isArray(content) ? Parts.parse(content) : [];
  return parts.flatMap((part): { type: "text" | "thinking"; text: string }[] => {
    if (part.type === "thinking" && typeof part.thinking === "string") return [{ type: "thinking", text: part.thinking }];
    if (part.type === "thinking") return contentParts(part.thinking).map(({ text }) => ({ type: "thinking", text }));
    return part.type === "text" && part.text ? [{ type: "text", text: part.text }] : [];
  });
}

const count = z
  .union([z.number(), z.string().min(1).transform(Number)])
  .pipe(z.number().nonnegative())
  .nullish()
  .catch(undefined);
const Usage = z.object({
  prompt_tokens: count,
  completion_tokens: count,
  input_tokens: count,
  output_tokens: count,
  cached_tokens: count,
  prompt_cache_hit_tokens: count,
  prompt_tokens_details: z.object({ cached_tokens: count, cache_write_tokens: count }).nullish().catch(undefined),
  completion_tokens_details: z.object({ reasoning_tokens: count }).nullish().catch(undefined),
});

/**
 * Of the prompt's tokens, those that were read from a cache or written to one have prices of their own. @param pricesWrites whether
 * the model has one for writes; without it they are paid as any other input.
 */
export function counts(reported: unknown, pricesWrites: boolean): Partial<TokenCounts> | undefined {
  const { success, data: usage } = Usage.safeParse(reported);
  if (!success) return undefined;
  const details = usage.prompt_tokens_details;
  const cacheRead = details?.cached_tokens ?? usage.prompt_cache_hit_tokens ?? usage.cached_tokens ?? 0;
  const cacheWrite = (pricesWrites && details?.cache_write_tokens) || 0;
  const reasoning = usage.completion_tokens_details?.reasoning_tokens;
  return {
    input: Math.max(0, (usage.prompt_tokens ?? usage.input_tokens ?? 0) - cacheRead - cacheWrite),
    output: usage.completion_tokens ?? usage.output_tokens ?? 0,
    cacheRead,
    cacheWrite,
    ...(typeof reasoning === "number" && { reasoningTokens: reasoning }),
  };
}
