// What the client throws.
import type { FailureCode } from "../frame.ts";

/**
 * Why a request failed. Besides the daemon's own codes:
 * `disconnected` the daemon is gone; `protocol` it broke the framing; `timeout` the client stopped waiting; `cancelled` the
 * caller's signal fired; undefined when the daemon gave no code.
 */
export type HostErrorCode = FailureCode | "disconnected" | "protocol" | "timeout" | (string & {});

/** A request failed, or the connection did. `message` is the daemon's text, word for word, when it sent one. */
export class HostError extends Error {
  override readonly name = "HostError";
  /** The command that failed; `connection` when there was none. */
  readonly command: string;
  readonly code: HostErrorCode | undefined;
  constructor(command: string, message: string, code?: HostErrorCode, options?: ErrorOptions) {
    super(message, options);
    this.command = command;
    this.code = code;
  }
}
