// Protocol v2: one large frame as an uninterrupted run of `rpc_chunk` lines (002_…, "Transport and Framing").
import { CHUNK_BYTES } from "./limits.ts";

/** One piece of a large frame: base64 of bytes [index * 262144, …) of its UTF-8 JSON text. */
export interface RpcChunk {
  readonly type: "rpc_chunk";
  /** Same for all pieces of one frame; `rpc-<n>`. */
  readonly chunkId: string;
  readonly index: number;
  readonly count: number;
  /** Length of the whole JSON text in bytes, without a newline. */
  readonly byteLength: number;
  readonly data: string;
}

/** How many pieces a JSON text of this many bytes takes. */
export function chunkCount(byteLength: number): number {
  return Math.ceil(byteLength / CHUNK_BYTES);
}

/** The line (without `\n`) of piece `index`; all pieces but the last carry exactly 262144 bytes. */
export function encodeChunk(bytes: Buffer, chunkId: string, index: number): string {
  const from = index * CHUNK_BYTES;
  const data = bytes.toString("base64", from, Math.min(from + CHUNK_BYTES, bytes.length));
  // Base64 needs no escaping, so the line is put together by hand: a third of the cost of JSON.stringify.
  return `{"type":"rpc_chunk","chunkId":${JSON.stringify(chunkId)},"index":${index},"count":${chunkCount(bytes.length)},"byteLength":${bytes.length},"data":"${data}"}`;
}

/** All lines (without `\n`) of a JSON text, in order. */
export function* chunkLines(json: string, chunkId: string): Generator<string, void, void> {
  const bytes = Buffer.from(json, "utf8");
  const count = chunkCount(bytes.length);
  for (let index = 0; index < count; index += 1) yield encodeChunk(bytes, chunkId, index);
}
