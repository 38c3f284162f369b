// Files as text and back again, without a byte lost: what cannot be written back as it was is not taken for text.
import { utf16 } from "./_sniff.ts";

export interface Decoded {
  readonly encoding: "utf-8" | "utf-16le" | "utf-16be" | "bytes";
  /** Without a byte order mark. In `bytes` each character is one byte of an unknown encoding that holds ASCII, such as Latin-1. */
  readonly text: string;
  /** A changed text as bytes, with the mark of the original. */
  encode(text: string): Buffer;
}

/** Undefined for binary data. */
export function decode(bytes: Buffer): Decoded | undefined {
  const wide = utf16(bytes);
  const encodings = wide === undefined ? (["utf-8", "bytes"] as const) : ([wide] as const);
  for (const encoding of encodings) {
    const whole = textOf(bytes, encoding);
    if (!bytesOf(whole, encoding).equals(bytes) || (encoding === "bytes" && bytes.includes(0))) continue;
    const mark = encoding !== "bytes" && whole.startsWith("\ufeff") ? "\ufeff" : "";
    return { encoding, text: whole.slice(mark.length), encode: (text) => bytesOf(mark + text, encoding) };
  }
  return undefined;
}

function textOf(bytes: Buffer, encoding: Decoded["encoding"]): string {
  return encoding === "bytes" ? bytes.toString("latin1") : new TextDecoder(encoding, { ignoreBOM: true }).decode(bytes);
}

function bytesOf(text: string, encoding: Decoded["encoding"]): Buffer {
  if (encoding === "bytes") return Buffer.from(text, "latin1");
  if (encoding === "utf-8") return Buffer.from(text);
  const bytes = Buffer.from(text, "utf16le");
  return encoding === "utf-16be" ? bytes.swap16() : bytes;
}
