// The settings that decide which extension answers a name that several have (DESIGN §5 "Names"). They hold at once.
import { type Context, defineExtension, defineSetting, Extensions, Settings, z } from "mortise/extension";

const Prefer = defineSetting<Record<string, string>>({
  name: "prefer",
  schema: z.record(z.string().regex(/^[a-z ]+:./, 'Expected "kind:name", e.g. "tool:read"'), z.string().min(1)),
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

export default defineExtension({
  name: "conflicts",
  contributes: [Prefer, Suppress],
  setup(scope) {
    const { ctx } = scope;
    let current = "";
    const apply = () => {
      const prefer = ctx.setting(Prefer);
      const suppress = ctx.setting(Suppress);
      const idle = Object.keys(prefer).length === 0 && suppress.length === 0;
      if (idle && current === "") return;
      const ids = unitIds(ctx);
      const wanted = {
        prefer: Object.entries(prefer).map(([key, unit]): [string, string] => [key, ids.get(unit) ?? unit]),
        suppress: suppress
          .map((line) => suppressed(line, ids))
          .filter((line) => line !== ctx.owner && !line.endsWith(` ${ctx.owner}`)),
      };
      const text = idle ? "" : JSON.stringify(wanted);
      if (text === current) return;
      current = text;
      ctx.registry.setPolicy({ prefer: new Map(wanted.prefer), suppress: new Set(wanted.suppress) });
    };
    scope.onLive?.(() => {
      apply();
      const stopSettings = ctx.tryUse(Settings)?.onChange((paths) => {
        if (paths.some((path) => /^(?:prefer|suppress)(?:\.|$)/.test(path))) apply();
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
function suppressed(line: string, ids: ReadonlyMap<string, string>): string {
  const blank = line.lastIndexOf(" ");
  const direct = ids.get(line);
  if (direct !== undefined || blank < 0) return direct ?? line;
  const unit = line.slice(blank + 1);
  return `${line.slice(0, blank)} ${ids.get(unit) ?? unit}`;
}
