// What both services want of content: pictures they can read, names and ids in their alphabet, text that is not blank.
import { randomUUID } from "node:crypto";
import type { ImageContent, InputContent, Model, ProviderRequest, ToolResultMessage } from "mortise/extension";

const signatures: readonly [string, (head: string) => boolean][] = [
  ["image/png", (head) => head.startsWith("\x89PNG\r\n\x1a\n")],
  ["image/jpeg", (head) => head.startsWith("\xff\xd8\xff")],
  ["image/gif", (head) => head.startsWith("GIF8")],
  ["image/webp", (head) => head.startsWith("RIFF") && head.slice(8, 12) === "WEBP"],
];

export interface ReadableImage {
  mimeType: "image/png" | "image/jpeg" | "image/gif" | "image/webp";
  /** Base64 with its padding, without white space. */
  data: string;
}

/** Forms by picture: looking through megabytes once is enough. Pictures are never changed once they are in a message. */
const read = new WeakMap<ImageContent, ReadableImage | string>();

/** The picture as the services take it, or the text that stands in for it. */
export function readImage(image: ImageContent, model: Model): ReadableImage | string {
  if (!model.input.includes("image")) return `[${image.mimeType} left out: ${model.name} reads no images]`;
  const known = read.get(image) ?? checkImage(image);
  read.set(image, known);
  return known;
}

function checkImage(image: ImageContent): ReadableImage | string {
  const bare = image.data.replace(/^data:[^,]*,/, "").replace(/\s+/g, "");
  const data = bare.replace(/-/g, "+").replace(/_/g, "/").replace(/=+$/, "");
  if (data === "" || data.length % 4 === 1 || /[^A-Za-z0-9+/]/.test(data))
    return `[${image.mimeType} left out: its data is damaged]`;
  const head = Buffer.from(data.slice(0, 32), "base64").toString("latin1");
  // Services refuse a picture whose declared type is not its real one.
  const type = signatures.find(([, matches]) => matches(head))?.[0];
  if (type === undefined) return `[${image.mimeType} left out: only PNG, JPEG, GIF and WebP can be sent]`;
  return { mimeType: type as ReadableImage["mimeType"], data: data.padEnd(Math.ceil(data.length / 4) * 4, "=") };
}

/** Blocks with something in them; a string counts as one text block. */
export function filled(content: string | readonly InputContent[]): InputContent[] {
  const blocks: readonly InputContent[] = typeof content === "string" ? [{ type: "text", text: content }] : content;
  return blocks.filter((block) => block.type !== "text" || block.text.trim() !== "");
}

/** What a tool result says when the tool said nothing: services refuse blank text, and models take silence for a fault. */
export function blankResult(message: ToolResultMessage): string {
  return message.isError ? "The tool failed without saying why" : "(no output)";
}

/** Two-way mapping into a service's alphabet; different originals stay different. */
export class Renaming {
  readonly #there = new Map<string, string>();
  readonly #back = new Map<string, string>();
  /** The originals in the order in which they were met. */
  readonly #order: string[] = [];
  readonly #maxLength: number;

  constructor(maxLength: number) {
    this.#maxLength = maxLength;
  }

  to(original: string): string {
    const known = this.#there.get(original);
    if (known !== undefined) return known;
    const base = original.replace(/[^a-zA-Z0-9_-]/g, "_").slice(0, this.#maxLength) || "_";
    let name = base;
    for (let n = 2; this.#back.has(name); n++) name = `${base.slice(0, this.#maxLength - String(n).length - 1)}_${n}`;
    this.#add(original, name);
    return name;
  }

  #add(original: string, name: string): void {
    this.#there.set(original, name);
    this.#back.set(name, original);
    this.#order.push(original);
  }

  from(name: string): string {
    return this.#back.get(name) ?? name;
  }

  /** How many originals were met. */
  get size(): number {
    return this.#order.length;
  }

  /** As if only the first `size` originals had been met. */
  forgetFrom(size: number): void {
    for (const original of this.#order.splice(size)) {
      this.#back.delete(this.to(original));
      this.#there.delete(original);
    }
  }

  copy(): Renaming {
    const copy = new Renaming(this.#maxLength);
    for (const original of this.#order) copy.#add(original, this.to(original));
    return copy;
  }
}

/** Names that are legal already keep theirs, whatever else maps onto them. */
export function toolNames(request: ProviderRequest, maxLength: number): Renaming {
  const renaming = new Renaming(maxLength);
  const names = request.tools.map((tool) => tool.name);
  for (const name of names.toSorted((a, b) => Number(/[^\w-]/.test(a)) - Number(/[^\w-]/.test(b)))) renaming.to(name);
  return renaming;
}

/** The id of a call as the service gave it, or one of our own: some servers give none, and results are told apart by them. */
export function callId(given: unknown): string {
  return typeof given === "string" && given !== "" ? given : `call_${randomUUID()}`;
}

/** Arguments are JSON text. Some servers send the object itself, and an empty one where the text is still to come. */
export function argumentText(given: unknown): string {
  if (typeof given === "string") return given;
  return typeof given === "object" && given !== null && Object.keys(given).length > 0 ? JSON.stringify(given) : "";
}

/** A JSON object, `{}` for no text at all, or undefined when the text is not a whole object. */
export function parseArguments(text: string): Record<string, unknown> | undefined {
  if (text.trim() === "") return {};
  try {
    const outer: unknown = JSON.parse(text);
    // Some servers encode it twice.
    const value: unknown = typeof outer === "string" ? JSON.parse(outer) : outer;
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
  } catch {
    // Broken off or malformed; the caller knows which.
    return undefined;
  }
}
