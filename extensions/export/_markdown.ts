// Markdown to HTML. The library only parses; the markup is made here, token by token, so that raw HTML, unsafe links and
// foreign images in a text come out as text.
import type { MarkedToken, Token, Tokens } from "marked";
import type { Highlight } from "./_highlight.ts";
import { Html, html, nothing } from "./_html.ts";
import { math } from "./_math.ts";

export type Markdown = (text: string) => Html;

/** Longer texts stay plain. */
const MAX_CHARS = 400_000;
/** Runs of emphasis marks in one paragraph. */
const MAX_MARKS = 1500;
/** Nested quotes and lists beyond this stay plain: the parser is recursive. */
const MAX_DEPTH = 40;

export async function loadMarkdown(highlight: Highlight): Promise<Markdown> {
  const { Marked } = await import("marked");
  const parser = new Marked({ gfm: true, breaks: true, extensions: math });
  return (text) => {
    if (text.length > MAX_CHARS || isKnotty(text)) return plain(text);
    try {
      return html`<div class="md">${blocks(parser.lexer(text), highlight, 0)}</div>`;
    } catch {
      // Text that the parser cannot take is still text.
      return plain(text);
    }
  };
}

/** True for what takes the parser more than linear time: emphasis marks without end in one paragraph, deep quotes. */
function isKnotty(text: string): boolean {
  if (/^(?:[ \t]*>){60}/m.test(text)) return true;
  return text.split(/\n[ \t]*\n/).some((paragraph) => {
    let marks = 0;
    for (const _ of paragraph.matchAll(/[*_~]+/g)) if (++marks > MAX_MARKS) return true;
    return false;
  });
}

export function plain(text: string): Html {
  return html`<div class="plain">${text}</div>`;
}

function blocks(tokens: readonly Token[] | undefined, highlight: Highlight, depth: number): Html[] {
  return (tokens ?? []).map((token) => block(token, highlight, depth));
}

function block(token: MarkedToken | Tokens.Generic, highlight: Highlight, depth: number): Html {
  if (depth > MAX_DEPTH) return plain(token.raw);
  if (token.type === "math") return html`<div class="math">${token.raw.trim()}</div>`;
  return knownBlock(token as MarkedToken, highlight, depth);
}

function knownBlock(token: MarkedToken, highlight: Highlight, depth: number): Html {
  switch (token.type) {
    case "space":
    case "def":
    case "checkbox":
      return nothing;
    case "hr":
      return html`<hr>`;
    case "heading":
      return heading(token.depth, inline(token.tokens, depth));
    case "paragraph":
      return html`<p>${inline(token.tokens, depth)}</p>`;
    case "code":
      return codeBlock(token.text, token.lang, highlight);
    case "blockquote":
      return html`<blockquote>${blocks(token.tokens, highlight, depth + 1)}</blockquote>`;
    case "list":
      return list(token, highlight, depth);
    case "table":
      return table(token, depth);
    case "html":
      // As text, and in lines: models write tags of their own around whole paragraphs.
      return token.block ? plain(token.raw.trim()) : html`${token.raw}`;
    default:
      return inlineToken(token, depth);
  }
}

export function codeBlock(code: string, info: string | undefined, highlight: Highlight): Html {
  const language = /^[\w+#.-]+/.exec(info ?? "")?.[0];
  return withCopy(html`<pre class="code"><code>${highlight(code, language)}</code></pre>`, language);
}

/** A block of fixed text with the button that copies it. The word on it is the style's: it is no part of the text. */
export function withCopy(block: Html, language = ""): Html {
  return html`<div class="block"><button type="button" class="copy" aria-label="Copy"${language === "" ? nothing : html` data-lang="${language}"`}></button>${block}</div>`;
}

/** Below the headings of the page, of which entries have the second level. */
function heading(level: number, content: Html[]): Html {
  const tag = new Html(`h${Math.min(6, 2 + Math.max(1, Math.trunc(level) || 1))}`);
  return html`<${tag}>${content}</${tag}>`;
}

function list(token: Tokens.List, highlight: Highlight, depth: number): Html {
  const items = token.items.map((item) => {
    const box = item.task ? html`<span class="box">${item.checked ? "☑" : "☐"}</span> ` : nothing;
    return html`<li${item.task ? html` class="task"` : nothing}>${box}${blocks(item.tokens, highlight, depth + 1)}</li>`;
  });
  if (!token.ordered) return html`<ul dir="auto">${items}</ul>`;
  const start = typeof token.start === "number" && token.start !== 1 ? html` start="${token.start}"` : nothing;
  return html`<ol dir="auto"${start}>${items}</ol>`;
}

function table(token: Tokens.Table, depth: number): Html {
  const row = (cells: readonly Tokens.TableCell[], tag: Html) =>
    html`<tr>${cells.map((cell) => html`<${tag}${aligned(cell)}>${inline(cell.tokens, depth + 1)}</${tag}>`)}</tr>`;
  const [th, td] = [new Html("th"), new Html("td")];
  return html`<table><thead>${row(token.header, th)}</thead><tbody>${token.rows.map((cells) => row(cells, td))}</tbody></table>`;
}

function aligned({ align }: Tokens.TableCell): Html {
  return align === "right" || align === "center" ? html` class="${align}"` : nothing;
}

function inline(tokens: readonly Token[] | undefined, depth: number, inLink = false): Html[] {
  return (tokens ?? []).map((token) => inlineToken(token, depth + 1, inLink));
}

function inlineToken(token: MarkedToken | Tokens.Generic, depth: number, inLink = false): Html {
  if (depth > MAX_DEPTH) return html`${token.raw}`;
  if (token.type === "math") return html`<span class="math">${token.raw}</span>`;
  return knownInline(token as MarkedToken, depth, inLink);
}

function knownInline(token: MarkedToken, depth: number, inLink: boolean): Html {
  switch (token.type) {
    case "text":
      return "tokens" in token && token.tokens !== undefined
        ? html`${inline(token.tokens, depth, inLink)}`
        : html`${withoutEntities(token.text)}`;
    case "escape":
      return html`${token.text}`;
    case "strong":
      return html`<strong>${inline(token.tokens, depth, inLink)}</strong>`;
    case "em":
      return html`<em>${inline(token.tokens, depth, inLink)}</em>`;
    case "del":
      return html`<del>${inline(token.tokens, depth, inLink)}</del>`;
    case "codespan":
      return html`<code>${token.text}</code>`;
    case "br":
      return html`<br>`;
    case "checkbox":
      // The list item shows it.
      return nothing;
    case "link":
      return link(token.href, inline(token.tokens, depth, true), token.raw, inLink);
    case "image":
      // Nothing is fetched: a picture of somewhere else is a link to it.
      return link(token.href, [html`[image: ${token.text || token.href}]`], token.raw, inLink);
    default:
      return html`${token.raw}`;
  }
}

/** Links lead to the web or to a mail program; anything else stays the text it was. One inside of another is not one. */
function link(href: string, content: Html[], raw: string, inLink: boolean): Html {
  if (inLink) return html`${content}`;
  const url = safeUrl(href);
  return url === undefined ? html`${raw}` : html`<a href="${url}" target="_blank" rel="noopener noreferrer">${content}</a>`;
}

export function safeUrl(href: string): string | undefined {
  if (!/^(?:https?:\/\/|mailto:)/i.test(href)) return undefined;
  try {
    const url = new URL(href);
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : undefined;
  } catch {
    return undefined;
  }
}

/** Name and character of each. */
const ENTITIES =
  "amp& lt< gt> quot\" apos' nbsp\u00a0 copy© reg® deg° mdash— ndash– hellip… middot· bull• times× larr← rarr→ le≤ ge≥ ne≠";
const NAMED = new Map(ENTITIES.split(" ").map((entity) => [entity.slice(0, -1), entity.slice(-1)]));

/** The entities that people write in Markdown, as characters; the result is escaped like any text. */
function withoutEntities(text: string): string {
  return text.replace(/&([a-z]{2,6});/g, (whole, name: string) => NAMED.get(name) ?? whole);
}
