import { readFile } from "node:fs/promises";
import {
  defineTool,
  FileLocks,
  formatBytes,
  type ToolContext,
  ToolError,
  type ToolResult,
  textResult,
  Uris,
  z,
} from "mortise/extension";
import { describeChange } from "./_diff.ts";
import { type Decoded, decode } from "./_encoding.ts";
import { applyHunks } from "./_hunks.ts";
import {
  findText,
  lineAt,
  normalLine,
  type Replacement,
  replaceAll,
  replacementFor,
  type Span,
  TOLERANCES,
  type Tolerance,
  toLf,
} from "./_match.ts";
import { assertReadable, statPath, toolError } from "./_open.ts";
import { type Hunk, parsePatch } from "./_patch.ts";
import { realPath, resolvePath, shownPath } from "./_path.ts";
import { ChangedError, replaceFile } from "./_replace.ts";
import { markSeen, seenVersion, versionOf } from "./_seen.ts";

const MAX_BYTES = 32 * 1024 * 1024;
/** How often an edit starts again when somebody else changes the file meanwhile. */
const ATTEMPTS = 3;

const change = z.object({
  oldText: z.string().describe("Text to find; must occur once unless `all` is set"),
  newText: z.string().describe("Text to put in its place"),
  all: z.boolean().optional().describe("Replace every occurrence"),
});
type Change = z.infer<typeof change>;

// Strict: a change under another name must not be dropped.
const params = z.strictObject({
  path: z.string().optional().describe("File to change; may be left out when `patch` names it"),
  oldText: z.string().optional().describe("Text to find; must occur once unless `all` is set"),
  newText: z.string().optional().describe("Text to put in its place"),
  all: z.boolean().optional().describe("Replace every occurrence of oldText"),
  edits: z.array(change).optional().describe("Several replacements at once; all are matched against the file as it is now"),
  patch: z.string().optional().describe("A unified diff of one file; the lines decide where its hunks belong, not the numbers"),
});
type Params = z.infer<typeof params>;

export default defineTool<Params>({
  name: "edit",
  description: [
    "Change parts of a file: replace oldText by newText, several replacements with edits, or apply a unified diff with patch.",
    "oldText must match one place of the file; give enough lines around it. Line ends, byte order mark and everything else stay as they are.",
  ].join("\n"),
  promptSnippet: "Change parts of files",
  params,
  async run(ctx, args) {
    const work = planOf(args);
    const scheme = ctx.tryUse(Uris)?.schemeOf(work.path);
    if (scheme !== undefined && scheme !== "file") {
      throw new ToolError(`Cannot edit "${work.path}": edit changes files only; use read and write for ${scheme}:// URLs`);
    }
    const path = resolvePath(ctx.cwd, work.path);
    const shown = shownPath(ctx.cwd, path);
    const stats = await statPath(path, shown);
    assertReadable(stats, shown);
    if (stats.isDirectory()) throw new ToolError(`Cannot edit ${shown}: it is a directory`);
    const real = await realPath(path);
    return ctx.use(FileLocks).run(real, () => editFile(ctx, { path, shown, real }, work));
  },
});

interface File {
  path: string;
  shown: string;
  real: string;
}

type Plan =
  | { path: string; changes: Change[]; hunks?: undefined }
  | { path: string; changes?: undefined; hunks: readonly Hunk[] };

function planOf(args: Params): Plan {
  const forms = [args.oldText !== undefined || args.newText !== undefined, args.edits !== undefined, args.patch !== undefined];
  if (forms.filter((given) => given).length !== 1) {
    throw new ToolError("Cannot edit: give exactly one of oldText with newText, edits, or patch");
  }
  if (args.patch !== undefined) return planOfPatch(args.patch, args.path);
  if (args.path === undefined) throw new ToolError("Cannot edit: path is missing");
  if (args.edits !== undefined) {
    if (args.edits.length === 0) throw new ToolError("Cannot edit: edits is empty");
    return { path: args.path, changes: args.edits };
  }
  const { oldText, newText, all } = args;
  if (oldText === undefined || newText === undefined) {
    throw new ToolError(`Cannot edit: ${oldText === undefined ? "oldText" : "newText"} is missing`);
  }
  return { path: args.path, changes: [{ oldText, newText, all }] };
}

function planOfPatch(text: string, path: string | undefined): Plan {
  const patch = parsePatch(text);
  const target = path ?? patch.path;
  if (target === undefined) throw new ToolError("Cannot apply the patch: neither path nor a +++ line names the file");
  return { path: target, hunks: patch.hunks };
}

async function editFile(ctx: ToolContext, file: File, plan: Plan): Promise<ToolResult> {
  for (let attempt = 1; ; attempt++) {
    ctx.signal.throwIfAborted();
    const version = await versionOf(file.real);
    const known = seenVersion(ctx, file.real);
    const content = await readText(file, plan);
    const outcome =
      plan.hunks === undefined
        ? applyChanges(content.text, plan.changes, { shown: file.shown, stale: known !== undefined && known !== version })
        : patched(content.text, plan.hunks, file.shown);
    try {
      await replaceFile(file.real, content.encode(outcome.text), { shown: file.shown, expected: version, signal: ctx.signal });
    } catch (error) {
      if (!(error instanceof ChangedError)) throw error;
      if (attempt < ATTEMPTS) continue;
      throw new ToolError(`Cannot edit ${file.shown}: it is being changed by another program again and again`, { cause: error });
    }
    // A model that had not seen the latest version has not seen it now either.
    if (known === version) await markSeen(ctx, file.real);
    return present(file, content.text, outcome);
  }
}

interface Outcome {
  text: string;
  count: number;
  tolerance: Tolerance;
}

async function readText(file: File, plan: Plan): Promise<Decoded> {
  const bytes = await readFile(file.real).catch((error: unknown) => {
    throw toolError(`Cannot edit ${file.shown}`, error);
  });
  if (bytes.length > MAX_BYTES) {
    throw new ToolError(`Cannot edit ${file.shown}: ${formatBytes(bytes.length)} is more than ${formatBytes(MAX_BYTES)}`);
  }
  const decoded = decode(bytes);
  if (decoded === undefined) throw new ToolError(`Cannot edit ${file.shown}: it is not text`);
  if (decoded.encoding === "bytes" && !isAscii(plan)) {
    throw new ToolError(
      `Cannot edit ${file.shown}: it is not UTF-8 text, so the edit may hold ASCII characters only; leave out the lines with others, or use bash with iconv`,
    );
  }
  return decoded;
}

/** Characters of which every encoding in use has the same bytes. */
function isAscii({ changes, hunks }: Plan): boolean {
  const texts =
    changes?.flatMap(({ oldText, newText }) => [oldText, newText]) ??
    hunks?.flatMap(({ lines }) => lines.map(({ text }) => text)) ??
    [];
  return texts.every((text) => /^[\x00-\x7f]*$/.test(text));
}

function applyChanges(source: string, changes: readonly Change[], file: { shown: string; stale: boolean }): Outcome {
  const found: (Replacement & { match: Span; index: number })[] = [];
  let loosest: Tolerance = "exact";
  changes.forEach((item, index) => {
    const label = changes.length > 1 ? `edit ${index + 1}` : "the edit";
    const match = locate(source, item, { ...file, label });
    if (TOLERANCES.indexOf(match.tolerance) > TOLERANCES.indexOf(loosest)) loosest = match.tolerance;
    for (const span of match.spans) {
      found.push({ ...replacementFor(source, { span, tolerance: match.tolerance }, item), match: span, index });
    }
  });
  found.sort((a, b) => a.match.start - b.match.start);
  let end = 0;
  let previous = -1;
  for (const { match, index } of found) {
    if (match.start < end) {
      throw new ToolError(`Cannot edit ${file.shown}: edit ${previous + 1} and edit ${index + 1} overlap; join them`);
    }
    end = match.end;
    previous = index;
  }
  const text = replaceAll(source, found);
  if (text === source) throw new ToolError(`Cannot edit ${file.shown}: the file already reads so; nothing would change`);
  return { text, count: found.length, tolerance: loosest };
}

function locate(
  source: string,
  item: Change,
  file: { shown: string; stale: boolean; label: string },
): NonNullable<ReturnType<typeof findText>> {
  const { shown, label } = file;
  if (item.oldText === "") throw new ToolError(`Cannot edit ${shown}: oldText of ${label} is empty; use write to create a file`);
  if (toLf(item.oldText) === toLf(item.newText)) {
    throw new ToolError(`Cannot edit ${shown}: oldText and newText of ${label} are equal; nothing would change`);
  }
  const match = findText(source, item.oldText);
  if (match === undefined) {
    const stale = file.stale ? "; the file changed since it was read, read it again" : "";
    throw new ToolError(`Cannot edit ${shown}: oldText of ${label} was not found${stale}${nearest(source, item.oldText)}`);
  }
  if (match.spans.length > 1 && !item.all) {
    const lines = match.spans.slice(0, 10).map((span) => lineAt(source, span.start));
    const more = match.spans.length > 10 ? ", …" : "";
    throw new ToolError(
      `Cannot edit ${shown}: oldText of ${label} occurs ${match.spans.length} times (lines ${lines.join(", ")}${more}); give more lines around it, or set all`,
    );
  }
  return match;
}

/** Where a text that was not found comes closest, and what differs there. */
function nearest(source: string, wanted: string): string {
  const lines = toLf(wanted).split("\n");
  const first = lines.findIndex((line) => line.trim().length > 3);
  const span = first < 0 ? undefined : findText(source, (lines[first] ?? "").trim())?.spans[0];
  if (span === undefined) return "";
  const line = lineAt(source, span.start);
  const there = toLf(source).replace(/\n$/, "").split("\n");
  const differs = lines.findIndex((text, index) => {
    return (
      index > first && normalLine(there[line - 1 + index - first] ?? "", "spacing").trim() !== normalLine(text, "spacing").trim()
    );
  });
  if (differs < 0) return `; a line of it stands at line ${line}, but what follows differs`;
  const found = there[line - 1 + differs - first];
  const reads = found === undefined ? "the file ends" : `line ${line + differs - first} reads ${quoted(found)}`;
  return `; it comes closest at line ${line}, but ${reads} where oldText has ${quoted(lines[differs] ?? "")}`;
}

const quoted = (text: string) => JSON.stringify(text.length > 120 ? `${text.slice(0, 119)}…` : text);

function patched(source: string, hunks: readonly Hunk[], shown: string): Outcome {
  const { text, tolerance } = applyHunks(source, hunks, shown);
  if (text === source) throw new ToolError(`Cannot apply the patch to ${shown}: nothing would change`);
  return { text, count: hunks.length, tolerance };
}

function present(file: File, before: string, outcome: Outcome): ToolResult {
  const details = describeChange(file.shown, before, outcome.text);
  const places = outcome.count === 1 ? "1 place" : `${outcome.count} places`;
  const loose = outcome.tolerance === "exact" ? "" : ` (matched despite different ${outcome.tolerance})`;
  return textResult(`Edited ${file.shown} in ${places}${loose}, first at line ${details.firstChangedLine}`, {
    ...details,
    resolvedPath: file.path,
    op: "update",
  });
}
