import type { FileHandle } from "node:fs/promises";
import {
  defineSetting,
  defineTool,
  formatBytes,
  ImagesAutoResize,
  ReadDefaultLimit,
  type ToolContext,
  ToolError,
  type ToolResult,
  textResult,
  Uris,
  z,
} from "mortise/extension";
import { readImage } from "./_image.ts";
import { notebookText } from "./_notebook.ts";
import { assertReadable, openFile, statPath, toolError } from "./_open.ts";
import { readablePage } from "./_page.ts";
import { resolvePath, shownPath } from "./_path.ts";
import { markSeen, versionOf } from "./_seen.ts";
import { type LineRange, type Selection, splitSelector } from "./_selector.ts";
import { binaryType, imageType, PDF, utf16 } from "./_sniff.ts";
import { presentRanges, presentWindow, readWindow, textWindow, visible, type Window } from "./_text.ts";
import { directoryTree } from "./_tree.ts";

const AllowPrivateAddresses = defineSetting({
  name: "read.allowPrivateAddresses",
  schema: z.boolean(),
  default: false,
  summary: "Whether read may fetch web pages from this machine and from private networks",
});

/** Files that must be in memory as a whole: notebooks and UTF-16. */
const MAX_WHOLE = 16 * 1024 * 1024;

const params = z.object({
  path: z
    .string()
    .describe("File, directory or URL; may end in :N, :A-B, :A+COUNT (lines), several of them with commas, or :raw"),
  offset: z.number().int().min(1).optional().describe("First line, from 1"),
  limit: z.number().int().min(1).optional().describe("Number of lines"),
});
type Params = z.infer<typeof params>;

const read = defineTool<Params>({
  name: "read",
  description: [
    "Read a file, directory or web page.",
    "Text comes as it is, at most 2000 lines or 50 KB; the last line then says how to go on.",
    "Images (png, jpeg, gif, webp) are shown, notebooks and PDFs become text, a directory becomes a tree, a web page becomes Markdown.",
  ].join("\n"),
  promptSnippet: "Read files, directories, images and web pages",
  params,
  readOnly: true,
  async run(ctx, args) {
    const scheme = ctx.tryUse(Uris)?.schemeOf(args.path) ?? /^([a-z][a-z0-9+.-]+):\/\//i.exec(args.path)?.[1]?.toLowerCase();
    if (scheme === "http" || scheme === "https") return readWeb(ctx, args);
    if (scheme !== undefined && scheme !== "file") return readVirtual(ctx, args);
    return readPath(ctx, args);
  },
});

export default [read, AllowPrivateAddresses];

async function readPath(ctx: ToolContext, args: Params): Promise<ToolResult> {
  const selection = await select(ctx.cwd, args);
  return readLocal(ctx, resolvePath(ctx.cwd, selection.path), selection);
}

async function readLocal(
  ctx: ToolContext,
  path: string,
  selection: Selection,
  notes: readonly string[] = [],
): Promise<ToolResult> {
  const shown = shownPath(ctx.cwd, path);
  const stats = await statPath(path, shown);
  if (stats.isDirectory()) return textResult(await directoryTree(path, shown), { isDirectory: true, resolvedPath: path });
  assertReadable(stats, shown);
  const version = await versionOf(path);
  const handle = await openFile(path, shown);
  try {
    const result = await readFile(ctx, handle, { selection, path, shown, notes }).catch((error: unknown) => {
      throw error instanceof Error && "syscall" in error ? toolError(`Cannot read ${shown}`, error) : error;
    });
    await markSeen(ctx, path, version);
    return result;
  } finally {
    await handle.close();
  }
}

/** A file whose name looks like it ends in a selector wins over the selector. */
async function select(cwd: string, args: Params): Promise<Selection> {
  const split = splitSelector(args.path);
  const whole = split.path !== args.path && (await versionOf(resolvePath(cwd, args.path))) !== undefined;
  return withOffset(whole ? { path: args.path, ranges: [], raw: false } : split, args);
}

/** `offset` and `limit` say more than a selector. */
function withOffset(selection: Selection, { offset, limit }: Params): Selection {
  if (offset === undefined && limit === undefined) return selection;
  const [first] = selection.ranges;
  return { ...selection, ranges: [{ offset: offset ?? first?.offset ?? 1, limit: limit ?? first?.limit }] };
}

async function readFile(
  ctx: ToolContext,
  handle: FileHandle,
  file: { selection: Selection; path: string; shown: string; notes: readonly string[] },
): Promise<ToolResult> {
  const { selection, path, shown } = file;
  const head = Buffer.alloc(8192);
  const { bytesRead } = await handle.read(head, 0, head.length, 0);
  const start = head.subarray(0, bytesRead);
  const image = imageType(start);
  if (image !== undefined) {
    const { image: content, note } = await readImage(handle, image, { shown, resize: ctx.setting(ImagesAutoResize) });
    const details = { resolvedPath: path, contentType: content.mimeType };
    return { content: [{ type: "text", text: `[Image ${shown}: ${note}]` }, content], details };
  }
  const wide = utf16(start);
  const binary = wide === undefined ? binaryType(start) : undefined;
  if (binary === PDF) return readPdf(ctx, handle, file);
  if (binary !== undefined) {
    const { size } = await handle.stat();
    throw new ToolError(`Cannot read ${shown} as text: it is ${withArticle(binary)} of ${formatBytes(size)}`);
  }
  const notebook = path.endsWith(".ipynb") && !selection.raw;
  if (wide === undefined && !notebook) return present(ctx, file, (range) => readWindow(handle, range, ctx.signal));
  const text = new TextDecoder(wide ?? "utf-8").decode(await readWhole(handle, shown));
  const shownText = notebook ? notebookText(text, shown) : text;
  const notes = wide === undefined ? file.notes : [...file.notes, `Decoded from ${wide}`];
  return present(ctx, { ...file, notes }, (range) => textWindow(shownText, range));
}

async function readPdf(ctx: ToolContext, handle: FileHandle, file: Shown): Promise<ToolResult> {
  const { MAX_PDF, pdfText } = await import("./_pdf.ts");
  const { text, notes } = await pdfText(await readWhole(handle, file.shown, MAX_PDF), file.shown, ctx.signal);
  const details = { contentType: "application/pdf" };
  return present(ctx, { ...file, notes: [...file.notes, ...notes], details }, (range) => textWindow(text, range));
}

async function readVirtual(ctx: ToolContext, args: Params): Promise<ToolResult> {
  const uris = ctx.tryUse(Uris);
  if (uris === undefined) throw new ToolError(`Cannot read "${args.path}": no URL schemes are registered`);
  // The host gets the URL as the model wrote it (DESIGN §9); our own artifacts take a selector like files.
  const split = withOffset(
    /^artifact:/i.test(args.path) ? splitSelector(args.path) : { path: args.path, ranges: [], raw: false },
    args,
  );
  const { content, file, contentType, notes = [] } = await uris.read(split.path, ctx);
  if (file !== undefined) return readLocal(ctx, file, split, notes);
  if (content === "") return textResult("", { url: args.path, contentType, notes: [...notes] });
  const selection: Selection = { ...split, raw: true };
  return present(ctx, { selection, shown: args.path, notes, details: { url: args.path, contentType } }, (range) =>
    textWindow(content, range),
  );
}

async function readWeb(ctx: ToolContext, args: Params): Promise<ToolResult> {
  const selection = withOffset(splitSelector(args.path), args);
  // Node's HTTP stack comes with the first page that is read.
  const { fetchPage } = await import("./_fetch.ts");
  const page = await fetchPage(selection.path, { signal: ctx.signal, allowPrivate: ctx.setting(AllowPrivateAddresses) });
  const image = imageType(page.body);
  const { url, finalUrl, contentType } = page;
  const details = { url, finalUrl, contentType, method: "GET" };
  if (image !== undefined) {
    return { content: [{ type: "image", data: page.body.toString("base64"), mimeType: image }], details };
  }
  const isPdf = binaryType(page.body.subarray(0, 8192)) === PDF;
  const { text, notes } = isPdf
    ? await import("./_pdf.ts").then(({ pdfText }) => pdfText(page.body, url, ctx.signal))
    : await readablePage(page, selection.raw);
  const moved = finalUrl === url ? [] : [`Redirected to ${finalUrl}`];
  return present(ctx, { selection, shown: url, notes: [...moved, ...notes], details }, (range) => textWindow(text, range));
}

async function readWhole(handle: FileHandle, shown: string, limit = MAX_WHOLE): Promise<Buffer> {
  const { size } = await handle.stat();
  if (size > limit) throw new ToolError(`Cannot read ${shown}: ${formatBytes(size)} is more than ${formatBytes(limit)}`);
  const bytes = Buffer.alloc(size);
  const { bytesRead } = await handle.read(bytes, 0, size, 0);
  return bytes.subarray(0, bytesRead);
}

interface Shown {
  readonly selection: Selection;
  readonly path?: string;
  readonly shown: string;
  readonly notes: readonly string[];
  readonly details?: Record<string, unknown>;
}

type Source = (range: { offset: number; limit: number }) => Window | Promise<Window>;

async function present(ctx: ToolContext, file: Shown, source: Source): Promise<ToolResult> {
  const { ranges } = file.selection;
  const limit = ctx.setting(ReadDefaultLimit);
  const filled = (ranges.length > 0 ? ranges : [{ offset: 1, limit }]).map((range: LineRange) => ({
    ...range,
    limit: range.limit ?? limit,
  }));
  const { text, truncation } =
    filled.length > 1
      ? await presentRanges(filled, source, file.shown)
      : presentWindow(await source(filled[0] ?? { offset: 1, limit }), file.shown);
  const shown = file.selection.raw ? { text, notes: [] } : visible(text);
  const notes = [...file.notes, ...shown.notes];
  const tail = notes.length > 0 ? `${shown.text.endsWith("\n") ? "" : "\n"}\n[${notes.join("; ")}]` : "";
  return textResult(`${shown.text}${tail}`, {
    ...(file.path === undefined ? {} : { resolvedPath: file.path }),
    ...file.details,
    ...(truncation === undefined ? {} : { truncation }),
    ...(notes.length > 0 ? { notes } : {}),
  });
}

const withArticle = (name: string) =>
  /^(?:binary|UTF)/.test(name) ? name : `${/^(?:[aeioux]|MP)/i.test(name) ? "an" : "a"} ${name}`;
