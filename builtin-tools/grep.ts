import { dirname } from "node:path";
import { defineTool, ToolError, type ToolResult, textResult, truncateHead, z } from "mortise/extension";
import { shownPath } from "./_path.ts";
import { argument, type RgOutcome, runRipgrep } from "./_rg.ts";
import { searchPath, withoutGit } from "./_search-path.ts";
import { visible } from "./_text.ts";

const LIMIT = 100;
const MAX_LINE = 500;
/** Shown in front of a match in the middle of a longer line. */
const BEFORE = 100;

const params = z.object({
  pattern: z
    .string()
    .min(1)
    .describe("Regular expression (Rust syntax; look-around and back-references as in Perl), or text with literal"),
  path: z.string().optional().describe("File or directory; the session's directory by default"),
  glob: z.string().optional().describe("Only files that match, e.g. *.ts or src/**/*.js; ! in front excludes"),
  ignoreCase: z.boolean().optional(),
  literal: z.boolean().optional().describe("Take the pattern as plain text"),
  context: z.number().int().min(0).max(50).optional().describe("Lines shown before and after each match"),
  limit: z.number().int().min(1).max(2000).optional().describe(`Matching lines to give, ${LIMIT} by default`),
  skip: z.number().int().min(0).optional().describe("Matching lines to pass over, to go on after a limit"),
});
type Params = z.infer<typeof params>;

export default defineTool<Params>({
  name: "grep",
  description:
    "Search file contents with ripgrep. Gives path:line: text, sorted by path. Hidden files are searched, files ignored by .gitignore are not (unless a glob names them).",
  promptSnippet: "Search file contents",
  params,
  readOnly: true,
  async run(ctx, args) {
    const { path, shown, stats } = await searchPath(ctx, args.path ?? ".", "grep");
    if (!stats.isDirectory() && !stats.isFile()) throw new ToolError(`Cannot search ${shown}: it is neither file nor directory`);
    const matches = new Matches(ctx.cwd, args);
    const cwd = stats.isDirectory() ? path : dirname(path);
    const outcome = await runRipgrep(argumentsFor(args, path), {
      cwd,
      signal: ctx.signal,
      separator: 10,
      onRecord: (record) => matches.take(record),
    });
    if (!matches.complete && !outcome.stopped && !outcome.timedOut) throw new ToolError(failure(outcome));
    return present(matches, outcome, args);
  },
});

/** What the usual engine does not know: look-around and back-references. */
const PERL = /\(\?<?[=!]|\\[1-9]/;

const escaped = (text: string) => text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");

/** A line break in the pattern, outside of a class, is one of either kind. */
function withAnyBreak(pattern: string): string {
  return pattern.replace(/\[(?:\\.|[^\]\\])*\]|\\.|\n/gs, (part) => (part === "\n" || part === "\\n" ? "\\r?\\n" : part));
}

function argumentsFor(args: Params, path: string): string[] {
  const pattern = argument(args.pattern, "pattern");
  const hasBreak = (args.literal ? /\n/ : /\n|\\n/).test(pattern);
  const isPlain = args.literal === true && !hasBreak;
  return [
    "--json",
    "--hidden",
    "--no-require-git",
    "--sort=path",
    ...(args.glob === undefined ? [] : [`--glob=${argument(args.glob, "glob")}`]),
    ...withoutGit(path),
    ...(args.ignoreCase ? ["--ignore-case"] : []),
    // Files with CRLF: `$` stands in front of it, as a reader sees it.
    "--crlf",
    ...(isPlain ? ["--fixed-strings"] : []),
    ...(hasBreak ? ["--multiline"] : []),
    ...(!args.literal && PERL.test(pattern) ? ["--pcre2"] : []),
    ...(args.context ? [`--context=${args.context}`] : []),
    `--regexp=${isPlain || !hasBreak ? pattern : withAnyBreak(args.literal ? escaped(pattern) : pattern)}`,
    "--",
    path,
  ];
}

const Text = z.union([
  z.object({ text: z.string() }).transform(({ text }) => text),
  z.object({ bytes: z.string() }).transform(({ bytes }) => Buffer.from(bytes, "base64").toString()),
]);
const Line = z.object({
  path: Text,
  lines: Text,
  line_number: z.number().nullable(),
  /** Where the matches stand, in bytes. */
  submatches: z.array(z.object({ start: z.number(), end: z.number() })),
});
const Message = z.discriminatedUnion("type", [
  z.object({ type: z.literal("begin"), data: z.unknown() }),
  z.object({ type: z.literal("end"), data: z.unknown() }),
  z.object({ type: z.literal("match"), data: Line }),
  z.object({ type: z.literal("context"), data: Line }),
  z.object({ type: z.literal("summary"), data: z.unknown() }),
]);

/** Collects what ripgrep reports: matching lines with their context, in its order. */
class Matches {
  readonly lines: string[] = [];
  readonly files = new Set<string>();
  count = 0;
  linesTruncated = false;
  limitReached = false;
  /** The search has seen everything. */
  complete = false;
  readonly #cwd: string;
  readonly #limit: number;
  readonly #skip: number;
  readonly #context: boolean;
  #seen = 0;
  #lastFile = "";
  #lastLine = 0;
  /** Context before a match that turns out to be over the limit is not shown. */
  #held: string[] = [];

  constructor(cwd: string, args: Params) {
    this.#cwd = cwd;
    this.#limit = args.limit ?? LIMIT;
    this.#skip = args.skip ?? 0;
    this.#context = (args.context ?? 0) > 0;
  }

  take(record: string): boolean {
    const message = Message.parse(JSON.parse(record));
    if (message.type === "summary") this.complete = true;
    if (message.type === "match" || message.type === "context") return this.#line(message.type, message.data);
    return true;
  }

  #line(type: "match" | "context", data: z.infer<typeof Line>): boolean {
    const file = shownPath(this.#cwd, data.path);
    const number = data.line_number ?? 0;
    const texts = data.lines.replace(/\r?\n$/, "").split(/\r?\n/);
    const gap = this.#context && (file !== this.#lastFile || number > this.#lastLine + 1);
    this.#lastFile = file;
    this.#lastLine = number + texts.length - 1;
    if (type === "match" && ++this.#seen <= this.#skip) {
      this.#held = [];
      return true;
    }
    const mark = type === "match" ? ":" : "-";
    const place = data.submatches[0]?.start ?? 0;
    const shown = texts.map((text, index) => {
      return `${file}${mark}${number + index}${mark} ${this.#cut(text, index === 0 ? place : 0)}`;
    });
    if (gap) this.#held.push("--");
    if (type === "context") {
      this.#held.push(...shown);
      return true;
    }
    if (this.count === this.#limit) {
      this.limitReached = true;
      return false;
    }
    this.count++;
    this.files.add(file);
    this.lines.push(...this.#held, ...shown);
    this.#held = [];
    return true;
  }

  /** Context after the last match belongs to it. */
  finish(): string[] {
    if (this.limitReached || this.lines.length === 0) this.#held = [];
    const lines = [...this.lines, ...this.#held];
    if (lines[0] === "--") lines.shift();
    return lines;
  }

  /** The part of a long line around the byte at which the match begins. */
  #cut(text: string, place: number): string {
    if (text.length <= MAX_LINE) return visible(text).text;
    this.linesTruncated = true;
    const at = Buffer.from(text).toString("utf8", 0, place).length;
    const start = at < MAX_LINE - BEFORE ? 0 : Math.min(at - BEFORE, text.length - MAX_LINE);
    const part = text.slice(start, start + MAX_LINE).replace(/^[\udc00-\udfff]|[\ud800-\udbff]$/g, "");
    return `${start > 0 ? "…" : ""}${visible(part).text}${start + MAX_LINE < text.length ? "…" : ""}`;
  }
}

function present(matches: Matches, outcome: RgOutcome, args: Params): ToolResult {
  const lines = matches.finish();
  const truncation = truncateHead(lines.join("\n"));
  const notes: string[] = [];
  const skip = args.skip ?? 0;
  if (matches.limitReached)
    notes.push(`${matches.count} matches shown, there are more; continue with skip=${skip + matches.count} or narrow the search`);
  if (truncation.truncated)
    notes.push(`Cut after ${truncation.outputLines} lines; narrow the search or use a smaller limit with skip`);
  if (matches.linesTruncated) notes.push(`Of long lines ${MAX_LINE} characters are shown; use read to see them whole`);
  if (outcome.timedOut) notes.push("The search was ended after 30 s and is incomplete; narrow it");
  if (outcome.droppedRecords > 0) notes.push(`${outcome.droppedRecords} matches in lines of more than 4 MB are left out`);
  if (outcome.code === 2 && outcome.errors !== "") notes.push(`Some files could not be read: ${firstLine(outcome.errors)}`);
  if (lines.length === 0 && !args.literal && args.pattern.includes("\\|")) {
    notes.push("\\| stands for the character |; alternatives are separated by | alone");
  }
  const body = lines.length > 0 ? truncation.content : skip > 0 ? "No more matches" : "No matches";
  return textResult([body, ...notes.map((note) => `[${note}]`)].join("\n"), {
    matchCount: matches.count,
    fileCount: matches.files.size,
    files: [...matches.files].slice(0, 200),
    ...(matches.limitReached ? { matchLimitReached: matches.count } : {}),
    ...(matches.linesTruncated ? { linesTruncated: true } : {}),
    ...(truncation.truncated ? { truncation } : {}),
  });
}

function failure(outcome: RgOutcome): string {
  const reason = outcome.errors.replace(/^rg: /gm, "").trim();
  const hint = /regex parse error|PCRE2/.test(reason) ? "\nSet literal to search for it as plain text" : "";
  return `Cannot search: ${reason === "" ? "ripgrep ended without an answer" : reason}${hint}`;
}

const firstLine = (text: string) => text.trim().split("\n")[0] ?? "";
