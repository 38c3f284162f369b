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
import { fetchPage } from "./_fetch.ts";
import { readImage } from "./_image.ts";
import { notebookText } from "./_notebook.ts";
import { assertReadable, openFile, statPath } from "./_open.ts";
import { readablePage } from "./_page.ts";
import { resolvePath, shownPath } from "./_path.ts";
import { markSeen, versionOf } from "./_seen.ts";
import { type Selection, splitSelector } from "./_selector.ts";
import { binaryType, imageType, utf16 } from "./_sniff.ts";
import { presentWindow, readWindow, textWindow, visible, type Window } from "./_text.ts";
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
  path: z.string().describe("File, directory or URL; may end in :N, :A-B, :A+COUNT (lines) or :raw"),
  offset: z.number().int().min(1).optional().describe("First line, from 1"),
  limit: z.number().int().min(1).optional().describe("Number of lines"),
});
type Params = z.infer<typeof params>;

const read = defineTool<Params>({
  name: "read",
  description: [
    "Read a file, directory or web page.",
    "Text comes as it is, at most 2000 lines or 50 KB; the last line then says how to go on.",
    "Images (png, jpeg, gif, webp) are shown, notebooks become text, a directory becomes a tree, a web page becomes Markdown.",
  ].join("\n"),
  promptSnippet: "Read files, directories, images and web pages",
  params,
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
  const path = resolvePath(ctx.cwd, selection.path);
  const shown = shownPath(ctx.cwd, path);
  const stats = await statPath(path, shown);
  if (stats.isDirectory()) return textResult(await directoryTree(path, shown), { isDirectory: true, resolvedPath: path });
  assertReadable(stats, shown);
  const version = await versionOf(path);
  const handle = await openFile(path, shown);
  try {
    const result = await readFile(ctx, handle, { selection, path, shown });
    await markSeen(ctx, path, version);
    return result;
  } finally {
    await handle.close();
  }
}

/** A file whose name looks like it ends in a selector wins over the selector. */
async function select(cwd: string, args: Params): Promise<Selection> {
  const whole: Selection = { path: args.path, offset: undefined, limit: undefined, raw: false };
  const split = splitSelector(args.path);
  const selection = split.path === args.path || (await versionOf(resolvePath(cwd, args.path))) !== undefined ? whole : split;
  return { ...selection, offset: args.offset ?? selection.offset, limit: args.limit ?? selection.limit };
}

async function readFile(
  ctx: ToolContext,
  handle: FileHandle,
  file: { selection: Selection; path: string; shown: string },
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
  if (binary !== undefined) {
    const { size } = await handle.stat();
    throw new ToolError(`Cannot read ${shown} as text: it is ${withArticle(binary)} of ${formatBytes(size)}`);
  }
  const range = rangeOf(ctx, selection);
  if (wide !== undefined || (path.endsWith(".ipynb") && !selection.raw)) {
    const text = new TextDecoder(wide ?? "utf-8").decode(await readWhole(handle, shown));
    const shownText = path.endsWith(".ipynb") && !selection.raw ? notebookText(text, shown) : text;
    return present(textWindow(shownText, range), { ...file, notes: wide ? [`Decoded from ${wide}`] : [] });
  }
  return present(await readWindow(handle, range, ctx.signal), { ...file, notes: [] });
}

async function readVirtual(ctx: ToolContext, args: Params): Promise<ToolResult> {
  const uris = ctx.tryUse(Uris);
  if (uris === undefined) throw new ToolError(`Cannot read "${args.path}": no URL schemes are registered`);
  const { content, contentType, notes } = await uris.read(args.path, ctx);
  const range = rangeOf(ctx, args);
  if (content === "") return textResult("", { url: args.path, contentType, notes: [...(notes ?? [])] });
  const selection: Selection = { path: args.path, offset: args.offset, limit: args.limit, raw: true };
  return present(textWindow(content, range), {
    selection,
    shown: args.path,
    notes: notes ?? [],
    details: { url: args.path, contentType },
  });
}

async function readWeb(ctx: ToolContext, args: Params): Promise<ToolResult> {
  const split = splitSelector(args.path);
  const selection: Selection = { ...split, offset: args.offset ?? split.offset, limit: args.limit ?? split.limit };
  const page = await fetchPage(selection.path, { signal: ctx.signal, allowPrivate: ctx.setting(AllowPrivateAddresses) });
  const image = imageType(page.body);
  const { url, finalUrl, contentType } = page;
  const details = { url, finalUrl, contentType, method: "GET" };
  if (image !== undefined) {
    return { content: [{ type: "image", data: page.body.toString("base64"), mimeType: image }], details };
  }
  const { text, notes } = await readablePage(page, selection.raw);
  const moved = finalUrl === url ? [] : [`Redirected to ${finalUrl}`];
  return present(textWindow(text, rangeOf(ctx, selection)), { selection, shown: url, notes: [...moved, ...notes], details });
}

function rangeOf(ctx: ToolContext, selection: { offset?: number | undefined; limit?: number | undefined }) {
  return { offset: selection.offset ?? 1, limit: selection.limit ?? ctx.setting(ReadDefaultLimit) };
}

async function readWhole(handle: FileHandle, shown: string): Promise<Buffer> {
  const { size } = await handle.stat();
  if (size > MAX_WHOLE) throw new ToolError(`Cannot read ${shown}: ${formatBytes(size)} is more than ${formatBytes(MAX_WHOLE)}`);
  const bytes = Buffer.alloc(size);
  const { bytesRead } = await handle.read(bytes, 0, size, 0);
  return bytes.subarray(0, bytesRead);
}

function present(
  window: Window,
  file: { selection: Selection; path?: string; shown: string; notes: readonly string[]; details?: Record<string, unknown> },
): ToolResult {
  const { text, truncation } = presentWindow(window, file.shown);
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

const withArticle = (name: string) => (/^binary/.test(name) ? name : `${/^[aeioux]/i.test(name) ? "an" : "a"} ${name}`);
