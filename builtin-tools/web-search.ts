import {
  type Context,
  defineTool,
  Launch,
  type SearchProviderDefinition,
  ToolError,
  textResult,
  truncateHead,
  z,
} from "mortise/extension";
import { BraveBaseUrl, brave } from "./_brave.ts";

const LIMIT = 8;

const params = z.object({
  query: z.string().min(1).max(400).describe("What to search for"),
  recency: z.enum(["day", "week", "month", "year"]).optional().describe("Only pages of this last period"),
  limit: z.number().int().min(1).max(20).optional().describe(`Results to give, ${LIMIT} by default`),
});

const webSearch = defineTool<z.infer<typeof params>>({
  name: "web_search",
  description: "Search the web. Gives titles, addresses and extracts; open pages with read.",
  promptSnippet: "Search the web",
  params,
  readOnly: true,
  available: ({ context }) => context !== undefined && ready(context).length > 0,
  async run(ctx, { query, recency, limit = LIMIT }) {
    const [provider] = ready(ctx);
    if (provider === undefined) throw new ToolError("Cannot search the web: no search provider has a key, e.g. BRAVE_API_KEY");
    const results = await provider.search(ctx, { query, limit, recency, signal: ctx.signal });
    const text = results.map(({ title, url, snippet, age }, index) => {
      return `${index + 1}. ${title}\n   ${url}${age === undefined ? "" : ` (${age})`}\n   ${snippet}`.trimEnd();
    });
    const shown = truncateHead(text.join("\n\n"));
    return textResult(results.length > 0 ? shown.content : `Nothing found for "${query}"`, { provider: provider.label, results });
  },
});

/** Providers that can answer, in the registry's order. */
function ready(context: Context): SearchProviderDefinition[] {
  const env = context.tryUse(Launch)?.env ?? process.env;
  return context.registry
    .list("search provider")
    .map((entry) => entry.definition)
    .filter((provider) => provider.available(env));
}

export default [webSearch, brave, BraveBaseUrl];
