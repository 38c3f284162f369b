import { defineSlashCommand } from "mortise/extension";
import { bucketOf } from "./_rule.ts";
import { Rules } from "./_store.ts";
import { BuiltinRules, DisabledRules } from "./settings.ts";

const USES = {
  stream: "watches the answers",
  always: "always in the system prompt",
  listed: "read when it is needed",
  unused: "unused: its head says no use",
} as const;

/** `/rules`. */
export const rulesCommand = defineSlashCommand({
  name: "rules",
  description: "List the rules and what each is used for, or show one",
  argumentHint: "[rule]",
  source: "builtin",
  run(ctx, args) {
    const rules = ctx.use(Rules).list();
    if (rules.length === 0) return ctx.output("There are no rules. Put one into rules/<name>.md");
    if (args !== "") {
      const rule = rules.find(({ payload }) => payload.name === args);
      const names = rules.map(({ payload }) => payload.name).join(", ");
      return ctx.output(
        rule === undefined ? `No rule is called "${args}". There are: ${names}` : `${rule.payload.path}\n${rule.payload.content}`,
      );
    }
    const disabled = ctx.setting(DisabledRules);
    const builtin = ctx.setting(BuiltinRules);
    const width = Math.max(...rules.map(({ payload }) => payload.name.length));
    const lines = rules.map((rule) => {
      const { name } = rule.payload;
      const off = disabled.includes(name) ? DisabledRules : rule.origin === "builtin" && !builtin ? BuiltinRules : undefined;
      const use = off === undefined ? USES[bucketOf(rule)] : `off by ${off.name}`;
      return `${name.padEnd(width)}  ${use} (${rule.origin})`;
    });
    ctx.output(lines.join("\n"));
  },
});
