// `rule://name` is the text of a rule.
import { defineUriScheme, ToolError } from "mortise/extension";
import { Rules } from "./_store.ts";

export default defineUriScheme({
  name: "rule",
  description: "Text of a rule (rule://name)",
  async read(url, ctx) {
    const name = /^rule:\/\/([^/?#]*)/i.exec(url)?.[1] ?? "";
    const rules = ctx.tryUse(Rules)?.list() ?? [];
    const rule = rules.find(({ payload }) => payload.name === name || encodeURIComponent(payload.name) === name);
    if (rule === undefined) {
      const names = rules.length === 0 ? "there are none" : rules.map(({ payload }) => payload.name).join(", ");
      throw new ToolError(`Cannot read "${url}": no rule is called "${name}". Rules: ${names}`);
    }
    return { content: rule.payload.content, contentType: "text/markdown", immutable: false };
  },
});
