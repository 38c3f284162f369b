// Rules: what the user or the project lays down, told to the model always, when it asks, or when it goes against them.
import {
  answerStarting,
  contextBuilding,
  defineExtension,
  defineHook,
  defineService,
  errorMessage,
  followFolders,
  followService,
  Launch,
  Settings,
  type SetupScope,
  Trust,
  toolFinished,
  turnEnded,
  warnOnce,
} from "mortise/extension";
import { rulesCommand } from "./_command.ts";
import { bucketOf, type Rule } from "./_rule.ts";
import { sectionsOf } from "./_sections.ts";
import { readStanding, standingFiles, withStanding } from "./_standing.ts";
import { ForeignRecords } from "./_state.ts";
import { RuleStore, Rules, ruleFolders } from "./_store.ts";
import { StreamRules } from "./_stream.ts";
import { BuiltinRules, DisabledRules, Enabled } from "./settings.ts";

/** Settings that say which rules are used. */
const USED = [Enabled, BuiltinRules, DisabledRules];

export default defineExtension({
  name: "rules",
  contributes: [rulesCommand],
  async setup(scope) {
    const { ctx } = scope;
    const { home, cwd } = ctx.use(Launch);
    const warn = warnOnce(ctx.log);
    const folders = ruleFolders({ home, cwd });
    const files = standingFiles({ home, cwd });
    const store = new RuleStore(folders, warn);
    const contributions = new Contributions(scope, store, cwd, warn);
    const following = followFolders({
      paths: () => [...folders.map(({ path }) => path), ...files],
      async scan() {
        if (await store.scan()) contributions.rulesChanged();
        contributions.standing(await readStanding(files, warn));
      },
      onError: (error) => warn(`Cannot read rules: ${errorMessage(error)}`),
    });
    scope.own(() => following.close(), "rule folders");
    scope.add(defineService(Rules, { create: () => store }));
    await following.first;
    // Settings and trust answer only when they are live; what was made before holds until then.
    followService(scope, Settings, (settings) => {
      contributions.renew();
      return settings.onChange((paths) => {
        if (USED.some(({ name }) => paths.includes(name))) contributions.renew();
      });
    });
    followService(scope, Trust, (trust) => {
      contributions.renew();
      return trust.onChange(() => contributions.renew());
    });
  },
});

/** What the rules of the moment contribute. */
class Contributions {
  readonly #scope: SetupScope;
  readonly #store: RuleStore;
  readonly #cwd: string;
  readonly #warn: (message: string) => void;
  /** Names of rules whose condition took too long. */
  readonly #slow = new Set<string>();
  readonly #hooks: readonly ReturnType<typeof defineHook>[];
  #streamed: readonly Rule[] = [];
  #standing = "";

  constructor(scope: SetupScope, store: RuleStore, cwd: string, warn: (message: string) => void) {
    this.#scope = scope;
    this.#store = store;
    this.#cwd = cwd;
    this.#warn = warn;
    const stream = new StreamRules(
      () => this.#streamed,
      new ForeignRecords(),
      ({ payload: { name, path } }, ms) => {
        this.#slow.add(name);
        warn(`Rule "${path}" is off until it changes: its condition took ${Math.round(ms)} ms`);
        this.renew();
      },
    );
    this.#hooks = [
      defineHook(answerStarting, (value, ctx) => stream.answerStarting(value, ctx)),
      defineHook(toolFinished, (value) => stream.toolFinished(value)),
      defineHook(turnEnded, (value) => stream.turnEnded(value)),
    ];
  }

  rulesChanged(): void {
    this.#slow.clear();
    this.renew();
  }

  renew(): void {
    const { ctx } = this.#scope;
    const disabled = ctx.setting(DisabledRules);
    const builtin = ctx.setting(BuiltinRules);
    const used = this.#store.list().filter(({ payload, origin }) => {
      return !disabled.includes(payload.name) && (origin !== "builtin" || builtin);
    });
    this.#streamed = ctx.setting(Enabled) ? used.filter((rule) => this.#mayWatch(rule)) : [];
    // Without such rules the turn loop asks nobody.
    this.#scope.replace("stream rules", this.#streamed.length > 0 ? this.#hooks : []);
    this.#scope.replace("rule sections", sectionsOf(used));
  }

  /** @param text of RULES.md; empty for none. */
  standing(text: string): void {
    if (text === this.#standing) return;
    this.#standing = text;
    const hook = defineHook(contextBuilding, (value) => ({ ...value, messages: withStanding(value.messages, text) }));
    this.#scope.replace("standing rules", text === "" ? [] : [hook]);
  }

  #mayWatch(rule: Rule): boolean {
    if (bucketOf(rule) !== "stream" || this.#slow.has(rule.payload.name)) return false;
    if (rule.origin !== "project" || !rule.risky || this.#scope.ctx.tryUse(Trust)?.isTrusted(this.#cwd) === true) return true;
    this.#warn(`Rule "${rule.payload.path}" is off until the project is trusted: its condition may take very long`);
    return false;
  }
}
