// The frames that are not commands' own: ready, responses, process-level notices. One JSON object per line.
import { z } from "zod";

export {
  CHUNK_BYTES,
  MAX_FRAME_BYTES,
  MAX_REASSEMBLED_FRAME_BYTES,
  PROTOCOL_VERSION,
  SUPPORTED_PROTOCOL_VERSIONS,
} from "./limits.ts";

/** A request id is echoed as it came; other JSON types are refused (DESIGN §3). */
export type RequestId = string | number;

export const ReadyFrame = z
  .object({
    type: z.literal("ready"),
    protocolVersion: z.literal(1),
    supportedProtocolVersions: z.array(z.number()),
    maxFrameBytes: z.number(),
    maxReassembledFrameBytes: z.number(),
  })
  .meta({ id: "ReadyFrame" });

/** Optional machine-readable reason of a failure (DESIGN §9). */
export const FailureCode = z.enum([
  "invalid_params",
  "busy",
  "not_found",
  "cancelled",
  "too_large",
  "stale_cursor",
  "session_busy",
  "unknown_since",
  "locked",
  "internal",
]);
export type FailureCode = z.infer<typeof FailureCode>;

export const ResponseFrame = z
  .object({
    id: z.union([z.string(), z.number()]).optional(),
    type: z.literal("response"),
    command: z.string().optional(),
    success: z.boolean(),
    data: z.unknown().optional(),
    error: z.string().optional(),
    code: FailureCode.optional(),
  })
  .meta({ id: "ResponseFrame" });
export type ResponseFrame = z.infer<typeof ResponseFrame>;

/** Any outbound frame. */
export interface Frame {
  type: string;
  [field: string]: unknown;
}
