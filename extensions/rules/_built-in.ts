// The rules that come with mortise. There are few, because each of them may cut an answer off: only what is a mistake in any
// project. A rule file of the same name takes the place of one, and `ttsr.builtinRules: false` turns them all off.
import { makeRule, type Rule } from "./_rule.ts";

/** As the heads of files would say it; no file is read for them when the daemon starts. */
const RULES: Readonly<Record<string, { data: Record<string, unknown>; body: string }>> = {
  "elided-code": {
    data: {
      description: "Files are written whole, without comments that stand for code",
      scope: "tool:write",
      globs: "!*.{md,mdx,markdown,txt,rst,adoc}",
      condition: [
        String.raw`(?i)(?:^|")[ \t]*(?://|#|--|;|%|/\*|<!--)[ \t]*(?:\.\.\.|…)[ \t]*\(?(?:the )?(?:rest|remaining|existing|previous|unchanged)\b`,
        String.raw`(?i)(?:^|")[ \t]*(?://|#|--|;|%|/\*|<!--)[ \t]*(?:the )?(?:rest of (?:the|your|this) (?:code|file|function|class|module|component|implementation)|(?:existing|previous|remaining) code)\b[^\n]{0,40}(?:unchanged|the same|stays|goes here|\.\.\.|…)`,
      ],
    },
    body: `The file becomes exactly what you write: a comment like "... existing code ..." does not keep that code, it deletes it. Write the whole file, or change the parts with edit.`,
  },
};

/** @throws {Error} one of them is no rule. */
export async function builtInRules(): Promise<Rule[]> {
  const rules: Rule[] = [];
  for (const [name, said] of Object.entries(RULES)) {
    const complain = (what: string) => {
      throw new Error(what);
    };
    const rule = await makeRule(`rule://${name}`, said, { path: "", origin: "builtin" }, complain);
    if (rule !== undefined) rules.push(rule);
  }
  return rules;
}
