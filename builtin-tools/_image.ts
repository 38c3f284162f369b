// Images for the model: checked, and made smaller when a provider would refuse them. sharp is optional.
import type { FileHandle } from "node:fs/promises";
import { errorMessage, formatBytes, type ImageContent, ToolError } from "mortise/extension";
import type { ImageType } from "./_sniff.ts";

/** Longer edges are refused or scaled down by the providers themselves. */
const MAX_EDGE = 2000;
/** 20 MiB of input. */
const MAX_INPUT = 20 * 1024 * 1024;
/** Anthropic refuses more than 5 MB of base64; others take more. */
const MAX_OUTPUT = 3_700_000;

export interface ReadImage {
  image: ImageContent;
  note: string;
}

/** @throws {ToolError} when the image is damaged, or too large and cannot be made smaller */
export async function readImage(
  handle: FileHandle,
  type: ImageType,
  options: { shown: string; resize: boolean },
): Promise<ReadImage> {
  const { size } = await handle.stat();
  const what = `${options.shown} (${type}, ${formatBytes(size)})`;
  if (size > MAX_INPUT) throw new ToolError(`Cannot read the image ${what}: more than ${formatBytes(MAX_INPUT)}`);
  const bytes = await handle.readFile();
  const sharp = await loadSharp();
  if (sharp === undefined) return unchecked(bytes, type, what);
  let width: number;
  let height: number;
  try {
    ({ width = 0, height = 0 } = await sharp(bytes).metadata());
    // Decodes all pixels, because a truncated image has a good header, but keeps none: some files of a few KB have a billion.
    await sharp(bytes, { failOn: "error" })
      .resize({ width: 1, height: 1, fit: "fill", fastShrinkOnLoad: false })
      .raw()
      .toBuffer();
  } catch (error) {
    const reason = errorMessage(error);
    const fault = reason.includes("pixel limit") ? "it has too many pixels" : `it is damaged (${reason})`;
    throw new ToolError(`Cannot read the image ${what}: ${fault}`, { cause: error });
  }
  const large = width > MAX_EDGE || height > MAX_EDGE || bytes.length > MAX_OUTPUT;
  if (!large) return { image: block(bytes, type), note: `${type}, ${width}x${height}` };
  if (!options.resize) {
    throw new ToolError(`Cannot read the image ${what}: ${width}x${height} is too large and images.autoResize is off`);
  }
  const smaller = sharp(bytes).rotate().resize({ width: MAX_EDGE, height: MAX_EDGE, fit: "inside", withoutEnlargement: true });
  let target: ImageType = type === "image/gif" ? "image/png" : type;
  let output = await smaller.clone().toFormat(formatOf(target)).toBuffer({ resolveWithObject: true });
  if (output.data.length > MAX_OUTPUT) {
    target = "image/jpeg";
    output = await smaller.flatten({ background: "#ffffff" }).jpeg({ quality: 80 }).toBuffer({ resolveWithObject: true });
  }
  const { info, data } = output;
  return { image: block(data, target), note: `${type}, ${width}x${height}, shown as ${info.width}x${info.height} ${target}` };
}

function unchecked(bytes: Buffer, type: ImageType, what: string): ReadImage {
  const size = imageSize(bytes, type);
  if (size === undefined) throw new ToolError(`Cannot read the image ${what}: it is damaged`);
  const { width, height } = size;
  if (width > MAX_EDGE || height > MAX_EDGE || bytes.length > MAX_OUTPUT) {
    throw new ToolError(
      `Cannot read the image ${what}: ${width}x${height} is too large, and sharp is not installed to make it smaller`,
    );
  }
  return { image: block(bytes, type), note: `${type}, ${width}x${height}` };
}

function block(bytes: Buffer, mimeType: ImageType): ImageContent {
  return { type: "image", data: bytes.toString("base64"), mimeType };
}

function formatOf(type: ImageType): "png" | "jpeg" | "webp" {
  return type === "image/jpeg" ? "jpeg" : type === "image/webp" ? "webp" : "png";
}

async function loadSharp(): Promise<typeof import("sharp").default | undefined> {
  try {
    return (await import("sharp")).default;
  } catch {
    return undefined;
  }
}

/** Width and height by the header; undefined when there is none. */
export function imageSize(bytes: Buffer, type: ImageType): { width: number; height: number } | undefined {
  if (type === "image/png")
    return bytes.length < 24 ? undefined : { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
  if (type === "image/gif")
    return bytes.length < 10 ? undefined : { width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) };
  if (type === "image/jpeg") return jpegSize(bytes);
  if (bytes.length < 30) return undefined;
  const kind = bytes.toString("latin1", 12, 16);
  if (kind === "VP8X") return { width: bytes.readUIntLE(24, 3) + 1, height: bytes.readUIntLE(27, 3) + 1 };
  if (kind === "VP8 ") return { width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff };
  const bits = bytes.readUInt32LE(21);
  return { width: (bits & 0x3fff) + 1, height: ((bits >> 14) & 0x3fff) + 1 };
}

/** Segments `FF xx length …` up to a start-of-frame one: `FF C0 length precision height width`. */
function jpegSize(bytes: Buffer): { width: number; height: number } | undefined {
  let at = 2;
  while (at + 9 < bytes.length && bytes[at] === 0xff) {
    const marker = bytes[at + 1] ?? 0;
    const frame = marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;
    if (frame) return { height: bytes.readUInt16BE(at + 5), width: bytes.readUInt16BE(at + 7) };
    at += 2 + bytes.readUInt16BE(at + 2);
  }
  return undefined;
}
