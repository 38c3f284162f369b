// The rules that come with mortise. There are few, because each of them may cut an answer off: only what is a mistake in any
// project. A rule file of the same name takes the place of one, and `ttsr.builtinRules: false` turns them all off.
import { parseRule, type Rule } from "./_rule.ts";

const FILES: Readonly<Record<string, string>> = {
  "elided-code": `---
description: Files are written whole, without comments that stand for code
scope: tool:write
globs: "!*.{md,mdx,markdown,txt,rst,adoc}"
condition:
  - '(?i)(?:^|")[ \\t]*(?://|#|--|;|%|/\\*|<!--)[ \\t]*(?:\\.\\.\\.|…)[ \\t]*\\(?(?:the )?(?:rest|remaining|existing|previous|unchanged)\\b'
  - '(?i)(?:^|")[ \\t]*(?://|#|--|;|%|/\\*|<!--)[ \\t]*(?:the )?(?:rest of (?:the|your|this) (?:code|file|function|class|module|component|implementation)|(?:existing|previous|remaining) code)\\b[^\\n]{0,40}(?:unchanged|the same|stays|goes here|\\.\\.\\.|…)'
---
The file becomes exactly what you write: a comment like "... existing code ..." does not keep that code, it deletes it. Write the whole file, or change the parts with edit.`,
};

/** @throws {Error} one of them is no rule. */
export async function builtInRules(): Promise<Rule[]> {
  const rules: Rule[] = [];
  for (const [name, text] of Object.entries(FILES)) {
    const complain = (what: string) => {
      throw new Error(what);
    };
    const rule = await parseRule(`rule://${name}`, text, { path: "", origin: "builtin" }, complain);
    if (rule !== undefined) rules.push(rule);
  }
  return rules;
}
