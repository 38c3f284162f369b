// Asks a server which models it has. The answer of `/v1/models` differs from server to server; only the id is sure.
import { errorMessage, type Model, z } from "mortise/extension";
import { complete } from "./_config.ts";

const price = z.union([z.string(), z.number()]).transform(Number).pipe(z.number().nonnegative()).optional().catch(undefined);
const size = z.number().int().positive().optional().catch(undefined);

const Entry = z.object({
  id: z.string().min(1),
  name: z.string().min(1).optional().catch(undefined),
  context_length: size,
  max_model_len: size,
  context_window: size,
  top_provider: z.object({ max_completion_tokens: size }).optional().catch(undefined),
  architecture: z
    .object({ input_modalities: z.array(z.string()).optional() })
    .optional()
    .catch(undefined),
  pricing: z
    .object({ prompt: price, completion: price, input_cache_read: price, input_cache_write: price })
    .optional()
    .catch(undefined),
  supported_parameters: z.array(z.string()).optional().catch(undefined),
});
type Entry = z.infer<typeof Entry>;
const List = z.array(z.unknown());
/** Some servers list them without anything around. */
const Answer = z.union([z.object({ data: List }), List.transform((data) => ({ data }))]);

export interface DiscoverySource {
  provider: string;
  api: string;
  baseUrl: string;
  apiKey?: string | undefined;
  headers?: Readonly<Record<string, string>> | undefined;
  compat?: Readonly<Record<string, unknown>> | undefined;
}

/** The models of a server. @throws {Error} when it does not answer within `limitMs` or says something else. */
export async function discover(
  source: DiscoverySource,
  limitMs: number,
  signal: AbortSignal,
  fetch = globalThis.fetch,
): Promise<Model[]> {
  const url = `${source.baseUrl.replace(/\/+$/, "")}/models`;
  const limit = AbortSignal.timeout(limitMs);
  try {
    const response = await fetch(url, {
      headers: {
        ...(source.apiKey && { authorization: `Bearer ${source.apiKey}` }),
        ...source.headers,
        accept: "application/json",
      },
      signal: AbortSignal.any([signal, limit]),
    });
    if (!response.ok) {
      await response.body?.cancel();
      throw new Error(`status ${response.status}`);
    }
    const answer = Answer.safeParse(await response.json());
    if (!answer.success) throw new Error("the answer is no list of models");
    return answer.data.data.flatMap((raw) => {
      const entry = Entry.safeParse(raw);
      return entry.success ? [toModel(source, entry.data)] : [];
    });
  } catch (error) {
    const why = limit.aborted ? `no answer within ${limitMs / 1000} s` : reason(error);
    throw new Error(`Cannot ask ${url} for its models: ${why}`);
  }
}

function reason(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return errorMessage(cause);
}

function toModel(source: DiscoverySource, entry: Entry): Model {
  const perMillion = (value: number | undefined) => Math.round((value ?? 0) * 1e12) / 1e6;
  const context = entry.context_length ?? entry.max_model_len ?? entry.context_window;
  return complete({
    ...source,
    id: entry.id,
    over: {
      name: entry.name,
      contextWindow: context,
      maxTokens: entry.top_provider?.max_completion_tokens,
      reasoning: entry.supported_parameters?.includes("reasoning") || undefined,
      supportsTools: entry.supported_parameters ? entry.supported_parameters.includes("tools") : undefined,
      input: entry.architecture?.input_modalities?.includes("image") ? ["text", "image"] : undefined,
      cost: entry.pricing && {
        input: perMillion(entry.pricing.prompt),
        output: perMillion(entry.pricing.completion),
        cacheRead: perMillion(entry.pricing.input_cache_read),
        cacheWrite: perMillion(entry.pricing.input_cache_write),
      },
    },
  });
}
