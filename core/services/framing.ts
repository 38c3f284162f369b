// The transport's protocol version. Implemented by the composition root over the writer of stdout.
import { createToken } from "../kernel/services.ts";

export interface Framing {
  readonly version: 1 | 2;
  /** Takes effect with the frame after the current command's response; there is no way back. */
  negotiate(version: 2): void;
}

export const Framing = createToken<Framing>("framing");
