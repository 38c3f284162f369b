// Answers of handlers and tools, read leniently: what does not fit is dropped or made to fit, never passed on.
import { inspect } from "node:util";
import type { ImageContent, InputContent, TextContent, ToolResult } from "mortise/extension";
import { isObject } from "./_schema.ts";

/** Reads a tool's answer. Nothing is an empty result, a text one block; blocks of other kinds become their JSON text. */
export function toToolResult(value: unknown): ToolResult {
  if (value === undefined || value === null) return { content: [] };
  if (typeof value === "string") return { content: [text(value)] };
  if (Array.isArray(value)) return { content: toContent(value) };
  if (!isObject(value)) return { content: [text(jsonText(value))] };
  if (!("content" in value)) return { content: [text(jsonText(value))] };
  const result: ToolResult = { content: toContent(value["content"]) };
  if (value["details"] !== undefined) result.details = storable(value["details"]);
  if (value["isError"] === true) result.isError = true;
  return result;
}

/** Reads content blocks; a text is one block. */
export function toContent(value: unknown): InputContent[] {
  if (typeof value === "string") return [text(value)];
  if (!Array.isArray(value)) return value === undefined || value === null ? [] : [text(jsonText(value))];
  return value.map(toBlock);
}

function toBlock(block: unknown): InputContent {
  if (typeof block === "string") return text(block);
  if (isObject(block)) {
    if (block["type"] === "text" && typeof block["text"] === "string") return { ...block, type: "text", text: block["text"] };
    const image = toImage(block);
    if (image !== undefined) return image;
  }
  return text(jsonText(block));
}

/** Images of pi (`data`, `mimeType`) and of the model services (`source`). */
function toImage(block: Record<string, unknown>): ImageContent | undefined {
  if (block["type"] !== "image") return undefined;
  const source = isObject(block["source"]) ? block["source"] : block;
  const mimeType = source["mimeType"] ?? source["mediaType"] ?? source["media_type"];
  if (typeof source["data"] !== "string" || typeof mimeType !== "string") return undefined;
  return { type: "image", data: source["data"], mimeType };
}

export function toImages(value: unknown): ImageContent[] | undefined {
  if (!Array.isArray(value)) return undefined;
  return value.flatMap((each) => (isObject(each) ? (toImage({ type: "image", ...each }) ?? []) : []));
}

/** The system prompt of an answer: one text or blocks, in either family. */
export function toPromptBlocks(value: unknown): string[] | undefined {
  if (typeof value === "string") return [value];
  if (Array.isArray(value)) return value.filter((block): block is string => typeof block === "string");
  return undefined;
}

/** What can be written to a session: the value itself when JSON holds it, else its JSON form, else a note. */
export function storable(value: unknown): unknown {
  try {
    const json = JSON.stringify(value);
    return json === undefined ? undefined : value;
  } catch {
    // A cycle or a bigint: the session file could not hold it, and losing the entry would be worse than losing the details.
    return { note: "Details that JSON cannot hold were dropped" };
  }
}

export function text(value: string): TextContent {
  return { type: "text", text: value };
}

function jsonText(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    // Cycles, bigints, objects that refuse to become text.
    return inspect(value, { depth: 4 });
  }
}
