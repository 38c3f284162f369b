// Rules: what the user or the project lays down, told to the model always, when it asks, or when it goes against them.
import {
  answerStarting,
  contentFolders,
  defineExtension,
  defineHook,
  defineService,
  errorMessage,
  followFolders,
  Launch,
  Settings,
  Trust,
  toolFinished,
  turnEnded,
  warnOnce,
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
    const warn = warnOnce(ctx.log);
    const folders = contentFolders({ home, cwd }, "rules");
    const store = new RuleStore(folders, warn);
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
    const following = followFolders({
      paths: () => folders.map(({ path }) => path),
      async scan() {
        if (!(await store.scan())) return;
        slow.clear();
        contribute();
      },
      onError: (error) => warn(`Cannot read rules: ${errorMessage(error)}`),
    });
    scope.own(() => following.close(), "rule folders");
    scope.add(defineService(Rules, { create: () => store }));
    await following.first;
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
