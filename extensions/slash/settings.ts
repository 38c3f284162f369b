import { CommandError, type Context, defineSlashCommand, Settings, type SlashContext } from "mortise/extension";
import { columns, inspect } from "./_format.ts";

export default defineSlashCommand({
  name: "settings",
  description: "Show settings and where they come from, or write one to your config.yml",
  argumentHint: "[path [value] | unset path]",
  subcommands: [
    { name: "show", usage: "<path>", description: "One setting, or all below a path" },
    { name: "set", usage: "<path> <value>", description: "Write it; the value is YAML" },
    { name: "unset", usage: "unset <path>", description: "Take it out of the file" },
  ],
  source: "builtin",
  async run(ctx, args) {
    const [path = "", ...rest] = args.split(/\s+/);
    if (path === "unset" && rest.length === 1) return write(ctx, rest[0] ?? "", undefined);
    if (rest.length === 0) return show(ctx, path);
    return write(ctx, path, await parseValue(args.slice(path.length).trim()));
  },
});

async function parseValue(text: string): Promise<unknown> {
  const { parse } = await import("yaml");
  try {
    // Not silent: that takes what is broken as far as it goes.
    return parse(text, { logLevel: "error" });
  } catch {
    throw new CommandError(`Cannot read the value as YAML: ${text}. Quote it`, "invalid_params");
  }
}

async function write(ctx: SlashContext, path: string, value: unknown): Promise<void> {
  const settings = ctx.use(Settings);
  await settings.write("user", path, value ?? undefined);
  const line = describe(ctx, path);
  const { layer } = settings.origin(path);
  const hidden = value !== undefined && layer !== "user" ? `\nYour file now has ${path}, but another one above it decides` : "";
  ctx.output(`${path} = ${line}${hidden}`);
}

function show(ctx: SlashContext, path: string): void {
  const known = ctx.registry.list("setting").map((entry) => entry.name);
  const configured = leavesOf(ctx.use(Settings).all());
  const all = [...new Set([...known, ...configured.filter((each) => !known.some((name) => each.startsWith(`${name}.`)))])].sort();
  const shown = path === "" ? all : all.filter((name) => name === path || name.startsWith(`${path}.`));
  if (shown.length > 1) ctx.output(columns(shown.map((name) => [name, describe(ctx, name)])));
  else ctx.output(explain(ctx, shown[0] ?? path));
}

function explain(ctx: Context, path: string): string {
  const definition = ctx.registry
    .list("setting")
    .find(({ definition: each }) => each.name === path || each.aliases?.includes(path));
  const line = `${path} = ${describe(ctx, path)}`;
  return definition === undefined ? line : `${line}\n${definition.definition.summary}`;
}

function describe(ctx: Context, path: string): string {
  const settings = ctx.use(Settings);
  const { layer, file } = settings.origin(path);
  const value = settings.getPath(path);
  const from = value === undefined ? "" : ` (${file === undefined ? layer : `${layer}: ${file}`})`;
  return `${inspect(masked(path, value))}${from}`;
}

const SECRET = /(?:key|token|secret|password|credential|authorization|cookie)s?$/i;

/** Texts that are credentials by a name they stand under are not shown. */
function masked(path: string, value: unknown): unknown {
  if (typeof value === "string") return path.split(".").some((name) => SECRET.test(name)) ? "…" : value;
  if (Array.isArray(value)) return value.map((each) => masked(path, each));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, masked(`${path}.${key}`, inner)]));
}

function leavesOf(data: Record<string, unknown>, prefix = ""): string[] {
  return Object.entries(data).flatMap(([key, value]) => {
    const path = prefix + key;
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? leavesOf(value as Record<string, unknown>, `${path}.`)
      : [path];
  });
}
