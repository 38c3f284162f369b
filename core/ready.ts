// The frame every daemon starts with (002_…, "Transport and Framing"). Free of libraries: it is written before one is loaded.
import {
  MAX_FRAME_BYTES,
  MAX_REASSEMBLED_FRAME_BYTES,
  PROTOCOL_VERSION,
  SUPPORTED_PROTOCOL_VERSIONS,
} from "../protocol/limits.ts";

export const READY_FRAME = {
  type: "ready",
  protocolVersion: PROTOCOL_VERSION,
  supportedProtocolVersions: SUPPORTED_PROTOCOL_VERSIONS,
  maxFrameBytes: MAX_FRAME_BYTES,
  maxReassembledFrameBytes: MAX_REASSEMBLED_FRAME_BYTES,
};
