// The settings that decide which extension answers a name that several have (DESIGN §5 "Names"). They hold at once.
import { type Context, defineExtension, defineSetting, Extensions, Settings, z } from "mortise/extension";

const Name = z.string().regex(/^[a-z][a-z0-9_-]{0,63}$/, "Expected a name of lower case letters, digits, _ and -");

const Prefer = defineSetting<Record<string, string>>({
  name: "prefer",
  schema: keyed(/^[a-z ]+:./, 'Expected "kind:name" before the colon, e.g. "tool:read"', z.string().min(1)),
  default: {},
  trustedOnly: true,
  summary: 'Which extension answers a name, e.g. {"tool:read": my-reader}',
});

const Suppress = defineSetting<string[]>({
  name: "suppress",
  schema: z.array(z.string().min(1)),
  default: [],
  trustedOnly: true,
  summary: 'Extensions whose contributions are hidden, or single ones as "kind:name extension"',
});

const Alias = defineSetting<Record<string, string>>({
  name: "alias",
  schema: keyed(/^(?:tool|slash command|agent):\S+ ./, 'Expected "tool:name extension", "slash command:…" or "agent:…"', Name),
  default: {},
  trustedOnly: true,
  summary: 'A second name of what an extension contributes, e.g. {"tool:search old-search": old_search}',
});

export default defineExtension({
  name: "conflicts",
  contributes: [Prefer, Suppress, Alias],
  setup(scope) {
    const { ctx } = scope;
    let current = "";
    const apply = () => {
      const prefer = ctx.setting(Prefer);
      const suppress = ctx.setting(Suppress);
      const alias = ctx.setting(Alias);
      const idle = Object.keys(prefer).length + suppress.length + Object.keys(alias).length === 0;
      if (idle && current === "") return;
      const ids = unitIds(ctx);
      const wanted = {
        prefer: Object.entries(prefer).map(([key, unit]): [string, string] => [key, ids.get(unit) ?? unit]),
        suppress: suppress
          .map((line) => withId(line, ids))
          .filter((line) => line !== ctx.owner && !line.endsWith(` ${ctx.owner}`)),
        alias: Object.entries(alias).map(([line, name]): [string, string] => [withId(line, ids), name]),
      };
      const text = idle ? "" : JSON.stringify(wanted);
      if (text === current) return;
      current = text;
      ctx.registry.setPolicy({
        prefer: new Map(wanted.prefer),
        suppress: new Set(wanted.suppress),
        alias: new Map(wanted.alias),
      });
    };
    scope.onLive?.(() => {
      apply();
      const stopSettings = ctx.tryUse(Settings)?.onChange((paths) => {
        if (paths.some((path) => /^(?:prefer|suppress|alias)(?:\.|$)/.test(path))) apply();
      });
      // Units are called by name: one that arrives later gets its id then.
      const stopRegistry = ctx.registry.onChange((diff) => {
        if (diff.added.length > 0) apply();
      });
      scope.own(() => {
        stopSettings?.();
        stopRegistry();
        // A newer generation has set its own by now; without one names fall back to their ranks.
        if (ctx.tryUse(Settings) === undefined) ctx.registry.setPolicy({ prefer: new Map(), suppress: new Set() });
      }, "conflict settings");
    });
  },
});

/** A map whose keys are checked by the map, because the message for a key of its own would not be shown. */
function keyed(pattern: RegExp, message: string, value: z.ZodType<string>) {
  return z.record(z.string(), value).superRefine((map, found) => {
    for (const key of Object.keys(map)) if (!pattern.test(key)) found.addIssue({ code: "custom", path: [key], message });
  });
}

/** Unit name → id; a name that several have stands for none. */
function unitIds(ctx: Context): Map<string, string> {
  const ids = new Map<string, string>();
  const twice = new Set<string>();
  for (const { id, name } of ctx.tryUse(Extensions)?.list() ?? []) {
    if (ids.has(name)) twice.add(name);
    ids.set(name, id);
  }
  for (const name of twice) ids.delete(name);
  return ids;
}

/** `name` or `kind:name unit`, with the unit's id. */
function withId(line: string, ids: ReadonlyMap<string, string>): string {
  const blank = line.lastIndexOf(" ");
  const direct = ids.get(line);
  if (direct !== undefined || blank < 0) return direct ?? line;
  const unit = line.slice(blank + 1);
  return `${line.slice(0, blank)} ${ids.get(unit) ?? unit}`;
}
