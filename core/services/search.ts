// Web search providers. The web_search tool asks the first one that has what it needs.
import type { Context } from "../kernel/context.ts";
import { type Definition, define } from "../kernel/definition.ts";

export interface SearchQuery {
  query: string;
  limit: number;
  /** Only pages of the last day, week, month or year. */
  recency?: "day" | "week" | "month" | "year" | undefined;
  signal: AbortSignal;
}

export interface SearchResult {
  title: string;
  url: string;
  snippet: string;
  /** When the page was published or changed, in the provider's words. */
  age?: string | undefined;
}

export interface SearchProviderDefinition extends Definition<"search provider"> {
  /** Shown in results. */
  readonly label: string;
  /** True when a key is there. Asked often: cheap and without side effects. */
  available(env: NodeJS.ProcessEnv): boolean;
  /** @throws {ToolError} when the service refuses or cannot be reached */
  search(ctx: Context, query: SearchQuery): Promise<SearchResult[]>;
}

/** Defines a search provider. */
export function defineSearchProvider(provider: Omit<SearchProviderDefinition, "kind">): SearchProviderDefinition {
  return define({ kind: "search provider", ...provider });
}

declare module "../kernel/definition.ts" {
  interface Kinds {
    "search provider": SearchProviderDefinition;
  }
}
