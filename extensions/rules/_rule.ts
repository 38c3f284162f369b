// A rule as its file says it: Markdown with a head that tells when it holds.
import { type ContentFolder, errorMessage, parseFrontmatter, z } from "mortise/extension";
import { type RuleScope, scopesOf } from "./_scope.ts";

export const InterruptMode = z.enum(["always", "prose-only", "tool-only", "never"]);
export type InterruptMode = z.infer<typeof InterruptMode>;

/** What hosts are told of a rule. */
export const RulePayload = z.object({
  name: z.string(),
  path: z.string().describe("Absolute path of its file; rule://name for one that comes with mortise"),
  content: z.string(),
  globs: z.array(z.string()).optional(),
  alwaysApply: z.boolean().optional(),
  description: z.string().optional(),
  condition: z.array(z.string()).optional().describe("Regular expressions"),
  scope: z.array(z.string()).optional(),
  interruptMode: InterruptMode.optional(),
});
export type RulePayload = z.infer<typeof RulePayload>;

export type RuleOrigin = ContentFolder["origin"] | "builtin";

export interface Rule {
  readonly payload: RulePayload;
  readonly origin: RuleOrigin;
  /** Empty when it does not watch the stream. */
  readonly patterns: readonly RegExp[];
  readonly scopes: readonly RuleScope[];
  /** A pattern may take very long on some texts. */
  readonly risky: boolean;
}

/** A folder with rules. */
export interface RuleFolder {
  readonly path: string;
  readonly origin: RuleOrigin;
  /** A file without a head holds always. */
  readonly always?: boolean;
}

/** What a name may look like: it stands in `rule://`. */
const NAME = /^[\p{L}\p{N}][\p{L}\p{N}._-]*$/u;
const MAX_CHARS = 50_000;

/** Undefined when the file holds no rule. `warn` gets one line for each thing that cannot be used. */
export async function parseRule(
  file: string,
  text: string,
  folder: RuleFolder,
  warn: (message: string) => void,
): Promise<Rule | undefined> {
  const { data, body, warning } = await parseFrontmatter(text);
  if (warning !== undefined) warn(`Head of rule "${file}" is read line by line: ${warning}`);
  return makeRule(file, { data, body }, folder, warn);
}

/** A rule of what its file says. */
export async function makeRule(
  file: string,
  { data, body }: { data: Record<string, unknown>; body: string },
  { origin, always = false }: RuleFolder,
  warn: (message: string) => void,
): Promise<Rule | undefined> {
  const name = oneLine(data["name"]) ?? file.slice(file.lastIndexOf("/") + 1).replace(/\.mdc?$/i, "");
  const complain = (what: string) => warn(`Rule "${file}": ${what}`);
  if (!NAME.test(name)) {
    complain(`ignored, its name "${name}" must be letters, digits, ".", "_" and "-"`);
    return undefined;
  }
  const content = body.trim();
  if (content === "" || content.length > MAX_CHARS) {
    complain(content === "" ? "ignored, it has no text" : `ignored, its text is longer than ${MAX_CHARS} characters`);
    return undefined;
  }
  const globs = words(data["globs"]);
  const scope = words(data["scope"]);
  const condition = texts(data["condition"]);
  const patterns = condition.flatMap((source) => patternOf(source, complain) ?? []);
  const description = oneLine(data["description"]);
  const interruptMode = interruptModeOf(data["interruptMode"], complain);
  return {
    payload: {
      name,
      path: file,
      content,
      ...(globs.length === 0 ? {} : { globs }),
      ...(saysAlways(data) || (always && Object.keys(data).length === 0) ? { alwaysApply: true } : {}),
      ...(description === undefined ? {} : { description }),
      ...(condition.length === 0 ? {} : { condition }),
      ...(scope.length === 0 ? {} : { scope }),
      ...(interruptMode === undefined ? {} : { interruptMode }),
    },
    origin,
    patterns,
    scopes: patterns.length === 0 ? [] : await scopesOf(scope, globs, complain),
    risky: patterns.some((pattern) => isRisky(pattern.source)),
  };
}

/** In the words of others as well: Cursor's `alwaysApply`, Windsurf's `trigger`. */
function saysAlways(data: Record<string, unknown>): boolean {
  return String(data["alwaysApply"]) === "true" || data["trigger"] === "always_on";
}

/** What a rule is used for. The first of condition, alwaysApply and description decides. */
export function bucketOf({ payload, patterns, scopes }: Rule): "stream" | "always" | "listed" | "unused" {
  if (payload.condition !== undefined) return patterns.length > 0 && scopes.length > 0 ? "stream" : "unused";
  if (payload.alwaysApply === true) return "always";
  return payload.description === undefined ? "unused" : "listed";
}

/** A pattern with `^` and `$` at lines; flags may stand in front: `(?i)todo`. */
function patternOf(source: string, complain: (what: string) => void): RegExp | undefined {
  const [, flags = "", rest = source] = /^\(\?([ims]+)\)([\s\S]*)$/.exec(source) ?? [];
  try {
    const pattern = new RegExp(rest, [...new Set(`gm${flags}`)].join(""));
    if (!pattern.test("")) return pattern;
    complain(`condition "${source}" is left out, it matches text that says nothing`);
  } catch (error) {
    complain(`condition "${source}" is left out: ${errorMessage(error)}`);
  }
  return undefined;
}

/** A repeated group that repeats or chooses inside, a back reference, or several open repeats: time may explode. */
function isRisky(source: string): boolean {
  if (source.length > 500) return true;
  const plain = source.replace(/\\[^1-9k]/g, "_").replace(/\[(?:\\.|[^\]\\])*\]/g, "_");
  const nested = /\((?:[^()]|\([^()]*\))*[*+{|](?:[^()]|\([^()]*\))*\)[*+{]/.test(plain);
  return nested || /\\[1-9k]/.test(plain) || (plain.match(/[*+]|\{\d*,/g) ?? []).length > 3;
}

function interruptModeOf(value: unknown, complain: (what: string) => void): InterruptMode | undefined {
  if (value === undefined || value === null) return undefined;
  const parsed = InterruptMode.safeParse(value);
  if (!parsed.success) complain(`interruptMode must be ${InterruptMode.options.join(", ")}, not ${JSON.stringify(value)}`);
  return parsed.data;
}

function texts(value: unknown): string[] {
  const list = Array.isArray(value) ? value : [value];
  return list.flatMap((each: unknown) => (typeof each === "string" && each.trim() !== "" ? [each.trim()] : []));
}

/** A list, or words between commas; commas in brackets are part of a word. */
function words(value: unknown): string[] {
  if (Array.isArray(value)) return texts(value);
  return texts(value)
    .flatMap((text) => text.replace(/^\[(.*)\]$/, "$1").match(/(?:\([^)]*\)|\{[^}]*\}|[^,])+/g) ?? [])
    .map((word) => word.trim().replace(/^(["'])(.*)\1$/, "$2"))
    .filter((word) => word !== "");
}

function oneLine(value: unknown): string | undefined {
  if (typeof value !== "string" && typeof value !== "number") return undefined;
  const text = String(value).replace(/\s+/g, " ").trim();
  return text === "" ? undefined : text;
}
