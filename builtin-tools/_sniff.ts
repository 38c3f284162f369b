// What a file is, judged by its first bytes; the name is not asked.

export type ImageType = "image/png" | "image/jpeg" | "image/gif" | "image/webp";

export function imageType(head: Buffer): ImageType | undefined {
  if (starts(head, [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])) return "image/png";
  if (starts(head, [0xff, 0xd8, 0xff])) return "image/jpeg";
  const text = head.toString("latin1", 0, 12);
  if (text.startsWith("GIF87a") || text.startsWith("GIF89a")) return "image/gif";
  return text.startsWith("RIFF") && text.slice(8) === "WEBP" ? "image/webp" : undefined;
}

export const PDF = "PDF document";

const signatures: readonly (readonly [string, readonly number[]])[] = [
  [PDF, [0x25, 0x50, 0x44, 0x46, 0x2d]],
  ["ZIP archive (also Office files, jar, apk)", [0x50, 0x4b, 0x03, 0x04]],
  ["gzip archive", [0x1f, 0x8b]],
  ["bzip2 archive", [0x42, 0x5a, 0x68]],
  ["xz archive", [0xfd, 0x37, 0x7a, 0x58, 0x5a]],
  ["zstd archive", [0x28, 0xb5, 0x2f, 0xfd]],
  ["7z archive", [0x37, 0x7a, 0xbc, 0xaf]],
  ["ELF program or library", [0x7f, 0x45, 0x4c, 0x46]],
  ["Mach-O program or library", [0xcf, 0xfa, 0xed, 0xfe]],
  ["WebAssembly module", [0x00, 0x61, 0x73, 0x6d]],
  ["SQLite database", [0x53, 0x51, 0x4c, 0x69, 0x74, 0x65, 0x20]],
  ["Ogg media", [0x4f, 0x67, 0x67, 0x53]],
  ["MP3 audio", [0x49, 0x44, 0x33]],
  ["TIFF image", [0x49, 0x49, 0x2a, 0x00]],
  ["Windows icon", [0x00, 0x00, 0x01, 0x00]],
  ["Java class", [0xca, 0xfe, 0xba, 0xbe]],
];

/** A name for a binary file, or undefined when it looks like text. PDF counts as binary whatever its bytes. */
export function binaryType(head: Buffer): string | undefined {
  const known = signatures.find(([, bytes]) => starts(head, bytes))?.[0];
  if (known !== undefined && (known === PDF || hasControls(head))) return known;
  if (head.toString("latin1", 4, 8) === "ftyp") return "MP4 or HEIF media";
  if (isWide(head)) return "UTF-16 text without a byte order mark";
  return hasControls(head) ? "binary data" : undefined;
}

/** `utf-16le` or `utf-16be` by byte order mark. */
export function utf16(head: Buffer): "utf-16le" | "utf-16be" | undefined {
  if (starts(head, [0xff, 0xfe])) return "utf-16le";
  return starts(head, [0xfe, 0xff]) ? "utf-16be" : undefined;
}

/** Every second byte is mostly NUL, the others never are: Latin text in UTF-16. */
function isWide(head: Buffer): boolean {
  const zeros = [0, 0] as [number, number];
  for (let index = 0; index < head.length; index++) if (head[index] === 0) zeros[index % 2 === 0 ? 0 : 1]++;
  return head.length >= 8 && Math.min(...zeros) === 0 && Math.max(...zeros) > head.length / 3;
}

/** NUL never stands in text; many other control characters do not either. */
function hasControls(head: Buffer): boolean {
  if (head.includes(0)) return true;
  let odd = 0;
  for (const byte of head) if (byte < 7 || (byte > 13 && byte < 27) || (byte > 27 && byte < 32)) odd++;
  return odd > head.length / 10;
}

function starts(head: Buffer, bytes: readonly number[]): boolean {
  return bytes.every((byte, index) => head[index] === byte);
}
