// Rules: what the user or the project lays down, told to the model always, when it asks, or when it goes against them.
import { join } from "node:path";
import {
  answerStarting,
  defineExtension,
  defineHook,
  defineService,
  Launch,
  Settings,
  Trust,
  toolFinished,
  turnEnded,
} from "mortise/extension";
import { bucketOf, type Rule } from "./_rule.ts";
import { sectionsOf } from "./_sections.ts";
import { ForeignRecords } from "./_state.ts";
import { RuleStore, Rules } from "./_store.ts";
import { StreamRules } from "./_stream.ts";
import { DisabledRules, Enabled } from "./settings.ts";

export default defineExtension({
  name: "rules",
  async setup(scope) {
    const { ctx } = scope;
    const { home, cwd } = ctx.use(Launch);
    const told = new Set<string>();
    const warn = (message: string) => {
      if (told.has(message)) return;
      told.add(message);
      ctx.log.warn(message);
    };
    const store = new RuleStore(
      [
        { path: join(cwd, ".mortise", "rules"), origin: "project" },
        { path: join(home, "rules"), origin: "user" },
      ],
      warn,
    );
    const slow = new Set<string>();
    let streamed: readonly Rule[] = [];
    const stream = new StreamRules(
      () => streamed,
      new ForeignRecords(),
      ({ payload: { name, path } }, ms) => {
        slow.add(name);
        warn(`Rule "${path}" is off until it changes: its condition took ${Math.round(ms)} ms`);
        contribute();
      },
    );
    const hooks = [
      defineHook(answerStarting, (value, hookCtx) => stream.answerStarting(value, hookCtx)),
      defineHook(toolFinished, (value) => stream.toolFinished(value)),
      defineHook(turnEnded, (value) => stream.turnEnded(value)),
    ];
    const contribute = () => {
      const disabled = ctx.setting(DisabledRules);
      const used = store.list().filter(({ payload }) => !disabled.includes(payload.name));
      const trusted = (rule: Rule) => {
        if (rule.origin === "user" || !rule.risky || ctx.tryUse(Trust)?.isTrusted(cwd) === true) return true;
        warn(`Rule "${rule.payload.path}" is off until the project is trusted: its condition may take very long`);
        return false;
      };
      streamed = ctx.setting(Enabled)
        ? used.filter((rule) => bucketOf(rule) === "stream" && !slow.has(rule.payload.name) && trusted(rule))
        : [];
      // Without such rules the turn loop asks nobody.
      scope.replace("stream rules", streamed.length > 0 ? hooks : []);
      scope.replace("rule sections", sectionsOf(used));
    };
    await store.scan();
    scope.add(defineService(Rules, { create: () => store }));
    const close = store.watch(() => {
      slow.clear();
      contribute();
    });
    scope.own(close, "rule folders");
    contribute();
    scope.onLive?.(() => {
      // Settings and trust answer only now: they go live with the same swap.
      contribute();
      const stops = [
        ctx.tryUse(Settings)?.onChange((paths) => {
          if (paths.includes(Enabled.name) || paths.includes(DisabledRules.name)) contribute();
        }),
        ctx.tryUse(Trust)?.onChange(contribute),
      ];
      for (const stop of stops) if (stop !== undefined) scope.own(stop, "rule settings");
    });
  },
});
