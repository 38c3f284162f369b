// Builds PDF files for tests.
import { deflateSync } from "node:zlib";

export type PdfPart = string | { dict: string; data: string | Buffer; plain?: boolean };

/** A file of numbered objects, from 1; `data` is packed unless `plain`. The table of places is left out: readers find objects themselves. */
export function pdf(parts: readonly PdfPart[], trailer = "<< /Root 1 0 R >>"): Buffer {
  const chunks: Buffer[] = [Buffer.from("%PDF-1.7\n%\xe2\xe3\n", "latin1")];
  for (const [index, part] of parts.entries())
    chunks.push(Buffer.from(`${index + 1} 0 obj\n`), body(part), Buffer.from("\nendobj\n"));
  chunks.push(Buffer.from(`trailer\n${trailer}\nstartxref\n0\n%%EOF\n`));
  return Buffer.concat(chunks);
}

function body(part: PdfPart): Buffer {
  if (typeof part === "string") return Buffer.from(part, "latin1");
  const raw = typeof part.data === "string" ? Buffer.from(part.data, "latin1") : part.data;
  const data = part.plain === true ? raw : deflateSync(raw);
  const filter = part.plain === true ? "" : "/Filter /FlateDecode ";
  const head = `<< /Length ${data.length} ${filter}${part.dict} >>\nstream\n`;
  return Buffer.concat([Buffer.from(head, "latin1"), data, Buffer.from("\nendstream")]);
}

/** One page with a simple font F1 and these operators. */
export const onePage = (
  content: string,
  font = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
) =>
  pdf([
    "<< /Type /Catalog /Pages 2 0 R >>",
    "<< /Type /Pages /Kids [3 0 R] /Count 1 /Resources << /Font << /F1 4 0 R >> >> >>",
    "<< /Type /Page /Parent 2 0 R /Contents 5 0 R >>",
    font,
    { dict: "", data: content },
  ]);

/** The packing of LZWDecode, with codes that get longer one code early, or not. */
export function lzwPacked(data: Buffer, early: 0 | 1 = 1): Buffer {
  const bits: number[] = [];
  let table = new Map<string, number>();
  let width = 9;
  const put = (code: number) => {
    for (let bit = width - 1; bit >= 0; bit--) bits.push((code >> bit) & 1);
  };
  const clear = () => {
    put(256);
    table = new Map(Array.from({ length: 256 }, (_, byte) => [String.fromCharCode(byte), byte]));
    width = 9;
  };
  clear();
  let known = "";
  for (const character of data.toString("latin1")) {
    if (table.has(known + character)) {
      known += character;
      continue;
    }
    put(table.get(known) ?? 0);
    table.set(known + character, table.size + 2);
    known = character;
    // The reader is one entry behind.
    if (table.size + 2 - 1 + early >= 1 << width) width++;
    if (table.size + 2 >= 4095) clear();
  }
  if (known !== "") put(table.get(known) ?? 0);
  if (table.size + 2 + early >= 1 << width) width = Math.min(12, width + 1);
  put(257);
  while (bits.length % 8 !== 0) bits.push(0);
  return Buffer.from(
    Array.from({ length: bits.length / 8 }, (_, index) => Number.parseInt(bits.slice(8 * index, 8 * index + 8).join(""), 2)),
  );
}
