// Colours for code blocks. Loaded with the first export; a block without a known language stays plain.
import type { LanguageFn } from "highlight.js";
import { Html, html, readable } from "./_html.ts";

/** Longer blocks stay plain: colouring takes time and helps nobody there. */
const MAX_CHARS = 30_000;

export type Highlight = (code: string, language: string | undefined) => Html;

export async function loadHighlight(): Promise<Highlight> {
  const { default: hljs } = await import("highlight.js/lib/core");
  const languages = await Promise.all(LANGUAGES.map(async ([name, load]) => [name, (await load()).default] as const));
  for (const [name, language] of languages) if (hljs.getLanguage(name) === undefined) hljs.registerLanguage(name, language);
  return (code, language) => {
    const name = language?.toLowerCase();
    if (name === undefined || code.length > MAX_CHARS || hljs.getLanguage(name) === undefined) return html`${code}`;
    // The library escapes the code, and leaves control characters to us.
    return new Html(hljs.highlight(readable(code), { language: name, ignoreIllegals: true }).value);
  };
}

const LANGUAGES: readonly (readonly [name: string, load: () => Promise<{ default: LanguageFn }>])[] = [
  ["bash", () => import("highlight.js/lib/languages/bash")],
  ["c", () => import("highlight.js/lib/languages/c")],
  ["cpp", () => import("highlight.js/lib/languages/cpp")],
  ["csharp", () => import("highlight.js/lib/languages/csharp")],
  ["css", () => import("highlight.js/lib/languages/css")],
  ["diff", () => import("highlight.js/lib/languages/diff")],
  ["dockerfile", () => import("highlight.js/lib/languages/dockerfile")],
  ["go", () => import("highlight.js/lib/languages/go")],
  ["ini", () => import("highlight.js/lib/languages/ini")],
  ["java", () => import("highlight.js/lib/languages/java")],
  ["javascript", () => import("highlight.js/lib/languages/javascript")],
  ["json", () => import("highlight.js/lib/languages/json")],
  ["kotlin", () => import("highlight.js/lib/languages/kotlin")],
  ["makefile", () => import("highlight.js/lib/languages/makefile")],
  ["markdown", () => import("highlight.js/lib/languages/markdown")],
  ["php", () => import("highlight.js/lib/languages/php")],
  ["python", () => import("highlight.js/lib/languages/python")],
  ["ruby", () => import("highlight.js/lib/languages/ruby")],
  ["rust", () => import("highlight.js/lib/languages/rust")],
  ["shell", () => import("highlight.js/lib/languages/shell")],
  ["sql", () => import("highlight.js/lib/languages/sql")],
  ["swift", () => import("highlight.js/lib/languages/swift")],
  ["typescript", () => import("highlight.js/lib/languages/typescript")],
  ["xml", () => import("highlight.js/lib/languages/xml")],
  ["yaml", () => import("highlight.js/lib/languages/yaml")],
];
