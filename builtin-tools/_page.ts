// Web pages as Markdown a model can read. The parsers are loaded with the first page.
import { ToolError } from "mortise/extension";
import type { Page } from "./_fetch.ts";
import { binaryType } from "./_sniff.ts";

export interface ReadablePage {
  text: string;
  notes: string[];
}

/** HTML becomes Markdown of its main content; other text stays as it is. @throws {ToolError} for binary content */
export async function readablePage(page: Page, raw: boolean): Promise<ReadablePage> {
  const type = page.contentType.toLowerCase();
  const binary = binaryType(page.body.subarray(0, 8192));
  if (binary !== undefined) throw new ToolError(`Cannot read ${page.finalUrl}: it is ${binary} (${type || "no content type"})`);
  const text = decode(page);
  const html = type.includes("html") || (!/^(?:text\/|application\/)/.test(type) && /^\s*<(?:!doctype html|html)/i.test(text));
  if (raw || !html) return { text, notes: [] };
  return toMarkdown(text, page.finalUrl);
}

async function toMarkdown(html: string, url: string): Promise<ReadablePage> {
  const [{ parseHTML }, { Readability }, { default: Turndown }] = await Promise.all([
    import("linkedom"),
    import("@mozilla/readability"),
    import("turndown"),
  ]);
  const turndown = new Turndown({ headingStyle: "atx", codeBlockStyle: "fenced", bulletListMarker: "-" });
  turndown.remove(["script", "style", "noscript", "iframe"]);
  const { document } = parseHTML(html);
  makeAbsolute(document, url);
  const title = document.title.trim();
  // Readability changes the document it reads.
  const article = new Readability(parseHTML(document.toString()).document, { charThreshold: 200 }).parse();
  const notes: string[] = [];
  let content = article?.content ?? undefined;
  if (content === undefined) {
    notes.push("No main content was recognised; the whole page is shown");
    content = document.body?.innerHTML ?? html;
  }
  const body = turndown.turndown(parseHTML(`<!doctype html><html><body>${content}</body></html>`).document.body).trim();
  const heading = article?.title?.trim() || title;
  return { text: `${heading === "" || body.startsWith(`# ${heading}`) ? "" : `# ${heading}\n\n`}${body}\n`, notes };
}

/** The part of a DOM document used here; the compiler has no DOM types. */
interface PageDocument {
  querySelector(selector: string): PageElement | null;
  querySelectorAll(selector: string): Iterable<PageElement>;
}
interface PageElement {
  getAttribute(name: string): string | null;
  setAttribute(name: string, value: string): void;
}

/** Links and images keep working outside the page. */
function makeAbsolute(document: PageDocument, url: string): void {
  const base = document.querySelector("base[href]")?.getAttribute("href");
  const root = base ? new URL(base, url) : new URL(url);
  for (const [selector, attribute] of [
    ["a[href]", "href"],
    ["img[src]", "src"],
  ] as const) {
    for (const element of document.querySelectorAll(selector)) {
      const value = element.getAttribute(attribute) ?? "";
      if (URL.canParse(value, root.href)) element.setAttribute(attribute, new URL(value, root).href);
    }
  }
}

/** By the header, else by the page's own word, else UTF-8. */
function decode(page: Page): string {
  const head = page.body.toString("latin1", 0, 2048);
  const named = /charset=["']?([\w-]+)/i.exec(page.contentType)?.[1] ?? /<meta[^>]+charset=["']?([\w-]+)/i.exec(head)?.[1];
  try {
    return new TextDecoder(named ?? "utf-8").decode(page.body);
  } catch {
    return new TextDecoder().decode(page.body);
  }
}
