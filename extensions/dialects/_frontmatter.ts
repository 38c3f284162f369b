// The YAML head of a Markdown file.
import { createRequire } from "node:module";

// Loaded at the first call: the families' function answers at once, so `import()` will not do.
const require = createRequire(import.meta.url);

const HEAD = /^\ufeff?---[ \t]*\r?\n(?:([\s\S]*?)\r?\n)?---[ \t]*(?:\r?\n|$)/;

/** Splits the head from the body. Text without a head has an empty one. @throws {Error} for a head that is no YAML. */
export function parseFrontmatter(content: string): { frontmatter: Record<string, unknown>; body: string } {
  const match = HEAD.exec(content);
  if (match === null) return { frontmatter: {}, body: content };
  const { parse } = require("yaml") as typeof import("yaml");
  const parsed: unknown = parse(match[1] ?? "");
  const frontmatter = typeof parsed === "object" && parsed !== null && !Array.isArray(parsed) ? { ...parsed } : {};
  return { frontmatter, body: content.slice(match[0].length).replace(/^\s*\n/, "") };
}

export function stripFrontmatter(content: string): string {
  return parseFrontmatter(content).body;
}
