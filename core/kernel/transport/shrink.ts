// Shortens a JSON value step by step. What is cut is replaced by a note of the same kind, so that the value keeps its shape:
// text stays text, a list of blocks stays a list of blocks.

interface Caps {
  /** UTF-16 units of a string. */
  readonly text: number;
  readonly items: number;
  readonly keys: number;
}

// Strings go first because they hold nearly all the bytes; lists and objects are touched when that was not enough.
const STEPS: readonly Caps[] = [
  { text: 262_144, items: 100_000, keys: 10_000 },
  { text: 65_536, items: 100_000, keys: 10_000 },
  { text: 16_384, items: 10_000, keys: 1_000 },
  { text: 4_096, items: 512, keys: 256 },
  { text: 1_024, items: 128, keys: 64 },
  { text: 256, items: 32, keys: 32 },
  { text: 128, items: 8, keys: 32 },
  { text: 96, items: 2, keys: 32 },
];

/** Room that the note of a cut string takes. */
const NOTE_UNITS = 48;

/** Ever shorter copies of the frame, computed as they are asked for. */
export function* shrink<T extends Record<string, unknown>>(frame: T): Generator<Record<string, unknown>, void, void> {
  for (const caps of STEPS) yield cutObject(frame, caps);
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function cut(value: unknown, caps: Caps): unknown {
  if (typeof value === "string") return cutText(value, caps.text);
  if (Array.isArray(value)) return cutList(value, caps);
  if (isRecord(value)) return isBigImage(value, caps) ? imageNote(value) : cutObject(value, caps);
  return value;
}

function cutText(text: string, cap: number): string {
  if (text.length <= cap) return text;
  let keep = Math.max(0, cap - NOTE_UNITS);
  // Half of a surrogate pair would be sent as an escape that no decoder can turn back into a character.
  if (keep > 0 && isHighSurrogate(text.charCodeAt(keep - 1))) keep -= 1;
  return `${text.slice(0, keep)}\n…[${text.length - keep} characters left out]`;
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

function cutList(list: readonly unknown[], caps: Caps): unknown[] {
  if (list.length <= caps.items) return list.map((item) => cut(item, caps));
  const kept = list.slice(0, caps.items).map((item) => cut(item, caps));
  const text = `…[${list.length - caps.items} items left out]`;
  if (typeof list[0] === "string") kept.push(text);
  else if (isBlock(list[0])) kept.push({ type: "text", text });
  return kept;
}

function cutObject(value: Record<string, unknown>, caps: Caps): Record<string, unknown> {
  const copy: Record<string, unknown> = {};
  const keys = Object.keys(value);
  // The order of keys is kept, so that `type`, `role` and ids, which stand first, survive.
  for (const key of keys.length <= caps.keys ? keys : keys.slice(0, caps.keys)) {
    if (key === "__proto__") continue;
    copy[cutText(key, caps.text)] = cut(value[key], caps);
  }
  if (keys.length > caps.keys) copy["rpcFrameElidedKeys"] = keys.length - caps.keys;
  return copy;
}

function isBlock(value: unknown): boolean {
  return isRecord(value) && typeof value["type"] === "string" && (typeof value["text"] === "string" || value["type"] === "image");
}

function isBigImage(value: Record<string, unknown>, caps: Caps): boolean {
  return value["type"] === "image" && typeof value["data"] === "string" && value["data"].length > caps.text;
}

/** Half an image is no image: a text block says what stood there. */
function imageNote(image: Record<string, unknown>): Record<string, unknown> {
  const size = typeof image["data"] === "string" ? image["data"].length : 0;
  const kind = typeof image["mimeType"] === "string" ? image["mimeType"].slice(0, 64) : "unknown type";
  return { type: "text", text: `…[image of ${kind}, ${size} base64 characters left out]` };
}
