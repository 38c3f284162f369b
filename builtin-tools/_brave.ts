// Brave's search API. One GET with the key in a header.
import { defineSearchProvider, defineSetting, Launch, type SearchQuery, ToolError, z } from "mortise/extension";

export const BraveBaseUrl = defineSetting({
  name: "webSearch.brave.baseUrl",
  schema: z.url(),
  default: "https://api.search.brave.com/res/v1",
  summary: "Where the Brave search API answers",
});

const KEY = "BRAVE_API_KEY";
const FRESHNESS = { day: "pd", week: "pw", month: "pm", year: "py" } as const;

const Reply = z.object({
  web: z
    .object({
      results: z.array(
        z.object({
          title: z.string(),
          url: z.string(),
          description: z.string().optional(),
          age: z.string().optional(),
        }),
      ),
    })
    .optional(),
});

export const brave = defineSearchProvider({
  name: "brave",
  label: "Brave",
  available: (env) => Boolean(env[KEY]?.trim()),
  async search(ctx, query) {
    const key = (ctx.tryUse(Launch)?.env ?? process.env)[KEY]?.trim();
    if (!key) throw new ToolError(`Cannot search the web: ${KEY} is not set`);
    const { fetchPage } = await import("./_fetch.ts");
    const page = await fetchPage(requestUrl(ctx.setting(BraveBaseUrl), query), {
      signal: query.signal,
      // The address comes from the user's settings, not from a page.
      allowPrivate: true,
      headers: { accept: "application/json", "x-subscription-token": key },
      timeoutMs: 15_000,
      maxBytes: 2 * 1024 * 1024,
    });
    const reply = Reply.safeParse(parseJson(page.body.toString()));
    if (!reply.success) throw new ToolError("Cannot search the web: the answer of Brave has an unknown form");
    return (reply.data.web?.results ?? []).slice(0, query.limit).map(({ title, url, description, age }) => ({
      title: plainText(title),
      url,
      snippet: plainText(description ?? ""),
      age,
    }));
  },
});

function requestUrl(base: string, query: SearchQuery): string {
  const url = new URL(`${base.replace(/\/+$/, "")}/web/search`);
  url.searchParams.set("q", query.query);
  url.searchParams.set("count", String(query.limit));
  if (query.recency !== undefined) url.searchParams.set("freshness", FRESHNESS[query.recency]);
  return url.href;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const entities: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'", "#x27": "'", nbsp: " " };

/** Results carry highlighting tags and entities. */
function plainText(html: string): string {
  return html.replace(/<[^>]*>/g, "").replace(/&(#?\w+);/g, (whole, name: string) => entities[name] ?? whole);
}
