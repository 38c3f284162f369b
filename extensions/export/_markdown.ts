// Markdown to HTML. The library only parses; the markup is made here, token by token, so that raw HTML, unsafe links and
// foreign images in a text come out as text.
import type { MarkedToken, Token, Tokens } from "marked";
import type { Highlight } from "./_highlight.ts";
import { Html, html, nothing } from "./_html.ts";

export type Markdown = (text: string) => Html;

/** Longer texts stay plain. */
const MAX_CHARS = 400_000;
/** Runs of emphasis marks in one paragraph. */
const MAX_MARKS = 1500;
/** Nested quotes and lists beyond this stay plain: the parser is recursive. */
const MAX_DEPTH = 40;

export async function loadMarkdown(highlight: Highlight): Promise<Markdown> {
  const { Lexer } = await import("marked");
  return (text) => {
    if (text.length > MAX_CHARS || isKnotty(text)) return plain(text);
    try {
      return html`<div class="md">${blocks(Lexer.lex(text, { gfm: true, breaks: true }), highlight, 0)}</div>`;
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
  return (tokens ?? []).map((token) => block(token as MarkedToken, highlight, depth));
}

function block(token: MarkedToken, highlight: Highlight, depth: number): Html {
  if (depth > MAX_DEPTH) return plain(token.raw);
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
    default:
      return inlineToken(token, depth);
  }
}

export function codeBlock(code: string, info: string | undefined, highlight: Highlight): Html {
  const language = /^[\w+#.-]+/.exec(info ?? "")?.[0];
  return html`<pre class="code"${language === undefined ? "" : html` data-lang="${language}"`}><code>${highlight(code, language)}</code></pre>`;
}

function heading(level: number, content: Html[]): Html {
  const tag = new Html(`h${Math.min(6, Math.max(1, Math.trunc(level) || 1))}`);
  return html`<${tag}>${content}</${tag}>`;
}

function list(token: Tokens.List, highlight: Highlight, depth: number): Html {
  const items = token.items.map((item) => {
    const box = item.task ? html`<span class="box">${item.checked ? "☑" : "☐"}</span> ` : nothing;
    return html`<li>${box}${blocks(item.tokens, highlight, depth + 1)}</li>`;
  });
  if (!token.ordered) return html`<ul>${items}</ul>`;
  const start = typeof token.start === "number" && token.start !== 1 ? html` start="${token.start}"` : nothing;
  return html`<ol${start}>${items}</ol>`;
}

function table(token: Tokens.Table, depth: number): Html {
  const row = (cells: readonly Tokens.TableCell[], tag: Html) =>
    html`<tr>${cells.map((cell) => html`<${tag}>${inline(cell.tokens, depth + 1)}</${tag}>`)}</tr>`;
  const [th, td] = [new Html("th"), new Html("td")];
  return html`<table><thead>${row(token.header, th)}</thead><tbody>${token.rows.map((cells) => row(cells, td))}</tbody></table>`;
}

function inline(tokens: readonly Token[] | undefined, depth: number): Html[] {
  return (tokens ?? []).map((token) => inlineToken(token as MarkedToken, depth + 1));
}

function inlineToken(token: MarkedToken, depth: number): Html {
  if (depth > MAX_DEPTH) return html`${token.raw}`;
  switch (token.type) {
    case "text":
      return "tokens" in token && token.tokens !== undefined
        ? html`${inline(token.tokens, depth)}`
        : html`${withoutEntities(token.text)}`;
    case "escape":
      return html`${token.text}`;
    case "strong":
      return html`<strong>${inline(token.tokens, depth)}</strong>`;
    case "em":
      return html`<em>${inline(token.tokens, depth)}</em>`;
    case "del":
      return html`<del>${inline(token.tokens, depth)}</del>`;
    case "codespan":
      return html`<code>${token.text}</code>`;
    case "br":
      return html`<br>`;
    case "checkbox":
      // The list item shows it.
      return nothing;
    case "link":
      return link(token.href, inline(token.tokens, depth), token.raw);
    case "image":
      // Nothing is fetched: a picture of somewhere else is a link to it.
      return link(token.href, [html`[image: ${token.text || token.href}]`], token.raw);
    default:
      return html`${token.raw}`;
  }
}

/** Links lead to the web or to a mail program; anything else stays the text it was. */
function link(href: string, content: Html[], raw: string): Html {
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

const NAMED: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0" };

/** The few entities that people write in Markdown, as characters; the result is escaped like any text. */
function withoutEntities(text: string): string {
  return text.replace(/&(amp|lt|gt|quot|apos|nbsp);/g, (whole, name: string) => NAMED[name] ?? whole);
}
