// The numbers of the framing. Apart from the schemas so that the client does not pull in zod.

/** Physical line limit of protocol v1, newline included (002_…, "Transport and Framing"). */
export const MAX_FRAME_BYTES = 1_048_576;
/** Logical frame limit of protocol v2, and the largest line the daemon reads. */
export const MAX_REASSEMBLED_FRAME_BYTES = 67_108_864;
/** Raw bytes in every `rpc_chunk` but the last. */
export const CHUNK_BYTES = 262_144;
export const PROTOCOL_VERSION = 1;
export const SUPPORTED_PROTOCOL_VERSIONS: readonly number[] = [1, 2];
